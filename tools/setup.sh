#!/bin/sh
# Makes .venv with a Python >= 3.11 and installs the package there, editable, with its development tools.
# Does nothing when .venv is sound and newer than pyproject.toml and constraints.txt. Run it by `make setup`.
set -eu
cd "$(dirname "$0")/.."

venv=.venv
python=$venv/bin/python
stamp=$venv/.installed       # written last; holds the folder the environment was made for
unfinished=$venv/.unfinished # written first; an environment that still has it is made anew
here=$(pwd -P)

stop() {
    echo "make setup: $*" >&2
    exit 1
}

recent() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }
has_venv() { "$1" -c 'import ensurepip, venv' >/dev/null 2>&1; }

# Environments hold absolute paths, so one that was copied or moved from elsewhere is not sound.
sound() {
    [ ! -e "$unfinished" ] && recent "$python" && "$python" -m pip --version >/dev/null 2>&1 &&
        { [ ! -e "$stamp" ] || [ "$(cat "$stamp")" = "$here" ]; }
}

current() { [ -e "$stamp" ] && [ -z "$(find pyproject.toml constraints.txt -newer "$stamp")" ]; }

# Sets $found to the first usable interpreter. Running each is the only test: a name on the PATH may be an empty shim.
find_python() {
    found='' without_venv=''
    for candidate in ${PYTHON:+"$PYTHON"} python3.13 python3.12 python3.11 python3 python; do
        if ! recent "$candidate"; then continue; fi
        if has_venv "$candidate"; then found=$candidate && return; fi
        without_venv=${without_venv:-$candidate}
    done
    [ -z "$without_venv" ] ||
        stop "$without_venv has no venv and ensurepip modules; install them (on Debian and Ubuntu: the python3-venv package)."
    stop "no Python 3.11 or newer found; install one, or name it: make setup PYTHON=path/to/python"
}

make_venv() {
    find_python
    [ -z "${PYTHON:-}" ] || [ "$found" = "$PYTHON" ] ||
        echo "make setup: PYTHON=$PYTHON is not a Python >= 3.11 with venv; using $found instead." >&2
    rm -rf "$venv" && mkdir "$venv" && : >"$unfinished" || stop "cannot write the folder $venv here."
    "$found" -m venv "$venv" || stop "$found could not make a virtual environment in $venv (see above)."
}

sound || make_venv
current && exit 0
echo "make setup: installing the package and its tools into $venv (a few minutes the first time)"
"$python" -m pip install --quiet --editable '.[dev]' --constraint constraints.txt ||
    stop "pip could not install the packages (see above); is the package index reachable?"
printf '%s\n' "$here" >"$stamp"
rm -f "$unfinished"
