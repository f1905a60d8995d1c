"""From the library's words to the command line's: `next_state=` is --next-state to who types flags.

Messages are written once, for Python. Here they are respelled, but for those of road networks, whose arguments mean
other flags (`start=` is --from-node there): `road_recipe` does these. What came with the data (quoted names and labels)
stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from revealed.description import flag, option_fields

OWN_FLAGS = ("bands", "initial", "states", "close", "links")  # of questions to a saved fit

# What has no flag of its own name, as regular expressions; the first that matches wins.
_PHRASES = {
    r"mdp\.base\.unroll\((\d+)\)": r"--horizon \1",
    r"Unroll `mdp\.base`": "Leave --horizon out",
    r"unroll a finite horizon": "give --horizon",
    r'`?fit\.with_errors\("(\w+)"\)`?': r"--errors \1",
    r"`?fit\.bootstrap\(\)`?": "--errors bootstrap",
    r'kind="(\w+)"': r"--errors \1",
    r"`kind`:": "`--errors`:",
    r"`keep`:": "`--cluster`:",
    r'bands="bootstrap", or None': "--bands bootstrap or none",
    r"bands=None": "--bands none",
    r"bandwidth=\(([^,()]+),[^()]*\)": r"--kernel \1",
    r"bandwidth=": "--kernel ",
    r"`bandwidth`:": "`--kernel`:",
    r"\.astype\(int\) will do": "write them without a decimal point",
    r"\(rv\.discretize makes bins\)": "(--bins COLUMN=20 makes bins)",
    r"rv\.discretize": "--bins",
    r"[Gg]ive edges=": "give edges, as in --bins COLUMN=edges:0,5,10",
    r"change the MDP's feasible= or terminal=": "change --transitions or --terminal",
    r"feasible= or terminal=": "--terminal",
    r"mark the pair infeasible \(feasible=\) or the state terminal \(terminal=\)": "leave the pair out, or --terminal",
    r",? or share outcomes between pairs \(landing=\)": "",
    r"Is `feasible` right, and were other actions seen": "Were other actions seen",
    r"`?feasible`?=": "--unseen infeasible",
    r'(Try|Use) solver="lu", or (a smaller )?': r"\1 \2",
    r"Pass rv\.first_step\.\w+\(features=\.\.\.\)": "Give --features, or another --first-step",
    r"Pass first_step=rv\.first_step\.\w+\(l2=1e-3\), fewer features, or another first step": (
        "Use fewer features, or another --first-step"
    ),
    r"Build the MDP as rv\.MDP\(rv\.estimate_transitions\(demos\), discount=\.\.\.\)": "Leave --transitions out",
    r", or, with known transitions, use Demonstrations\.from_counts": "",
    r"[Pp]ass n_states= and n_actions=": "list all of them in --features or --transitions",
    r"[Pp]ass n_states= when building the demonstrations": "list all states in --features or --transitions",
    r"Numbers that are names go in with their list: (state|action)s=": r"List the names of \1s as text",
    r"Pass keep_steps=True to read (?:it|the frame) into memory": "Make the panel smaller",
    r", an argument of from_frame and from_trajectories": "",
    r"a kernel over coordinates=": "a kernel (--kernel 1.0, with --coordinates x,y unless states are bins)",
    r"loosen tol\b": "loosen --tol",
    r"`?\bmax_iter\b`?=?": "--max-iter",
    r"start= with (?:such|smaller|more negative) parameters(, or )?": lambda m: "" if m[1] else "--start ccp",
    r"such as a constant, pass start= with parameters that make moves costly, or use a discount below 1": (
        "such as the constant of a road network (--columns …,constant); without a road network a --discount below 1 "
        "does, too"
    ),
    r"expected None(, where| with|;)": lambda m: f"expected nothing{m[1]}",
    r"a fit that fit\.save\(\) wrote": "the folder or the fit.zip of revealed fit",
}
_LIST = r"(?P<list>\w+)=\[(?P<items>[^\]]*)\]"
_TEXT = r'(?P<text>\w+)="(?P<word>[\w-]+)"'
_NUMBER = r"(?P<number>\w+)=(?P<value>\d[\d.]*(?:e[+-]?\d+)?)(?<!\.)"
_BARE = r"(?P<bare>\w+)=(?=[\s,;:)`]|\.(?!\.)|$)"
_TICKED = r"`(?P<ticked>\w+)`"
_ARGUMENT = re.compile("|".join([_TEXT, _NUMBER, _BARE, _TICKED]))
# what is kept: a call to be made in Python, what came with the data, and in notes the names of parameters
_KEPT = r"\w+=\[[^\]]*\]|rv\.load\([^)]*\)|(?<!\w)'(?:[^'\\]|\\.)*'(?!\w)"
_NAMED = r"|`(?!fit\.)[^`]*`"

PANEL = {"path": "PANEL", "frame": "PANEL", "demonstrations": "PANEL"}
FIT = {"path": "FIT"}


def in_flags(text: str, arguments: Mapping[str, str] | None = None) -> str:
    """The message in words of the command line. `arguments` are what arguments without a flag are called; None is
    said of notes, in which backquotes hold names of parameters."""
    known = _flags() | dict(arguments or {})
    pieces = re.split(f"({_KEPT}{_NAMED if arguments is None else ''})", text)
    return "".join(_kept(piece, known) if k % 2 else _reworded(piece, known) for k, piece in enumerate(pieces))


def _kept(piece: str, known: Mapping[str, str]) -> str:
    """What came with the data, unless it is the list of an argument."""
    found = re.fullmatch(_LIST, piece)
    if found is None or found["list"] not in known:
        return piece
    return f"{known[found['list']]} " + ",".join(part.strip().strip("'\"") for part in found["items"].split(","))


def _reworded(piece: str, known: Mapping[str, str]) -> str:
    for phrase, words in _PHRASES.items():
        piece = re.sub(phrase, words, piece)
    return re.sub(_ARGUMENT, lambda found: _respell(found, known), piece)


def _flags() -> dict[str, str]:
    return {name: flag(name) for name in (*option_fields(), *OWN_FLAGS)}


def _respell(found: re.Match[str], known: Mapping[str, str]) -> str:
    """One argument as a flag, where there is such a flag."""
    name = found["text"] or found["number"] or found["bare"] or found["ticked"]
    if name not in known:
        return found[0]
    value = found["word"] or found["value"]
    return f"`{known[name]}`" if found["ticked"] else known[name] + (f" {value}" if value else "")
