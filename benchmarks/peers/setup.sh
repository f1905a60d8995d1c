#!/bin/sh
# Makes .venv-peers with the rivals that `make bench-peers` measures: econirl, imitation with seals, QuantEcon.
# PyTorch comes first and from its CPU index, so that nothing pulls the gigabytes of its CUDA build.
# Does nothing when .venv-peers is whole and newer than constraints.txt.
set -eu
cd "$(dirname "$0")/../.."

venv=.venv-peers
stamp=$venv/.installed # written last; holds the folder the environment was made for
pins=benchmarks/peers/constraints.txt
here=$(pwd -P)

stop() {
    echo "make bench-peers: $*" >&2
    exit 1
}

current() { [ -e "$stamp" ] && [ "$(cat "$stamp")" = "$here" ] && [ -z "$(find "$pins" -newer "$stamp")" ]; }

install() {
    "$venv/bin/python" -m pip install --quiet --constraint "$pins" "$@" >"$venv/pip.log" 2>&1 ||
        stop "pip could not install the rivals; is the package index reachable? ($venv/pip.log has its words.)"
}

current && exit 0
[ -x .venv/bin/python ] || stop "there is no .venv yet; run \`make setup\` first."
echo "make bench-peers: installing the rivals into $venv (some minutes and 2 GB the first time)"
[ -x "$venv/bin/python" ] || .venv/bin/python -m venv "$venv" || stop "could not make a virtual environment in $venv."
install torch --extra-index-url "${TORCH_INDEX:-https://download.pytorch.org/whl/cpu}"
install econirl imitation seals quantecon
printf '%s\n' "$here" >"$stamp"
