"""The description of a run in words: every option of `revealed fit` with its default, from flags or TOML and back.

One table of options serves the command line, the file, and Python, so that the same words mean the same everywhere.
Paths in a file are relative to the folder of that file: it can be moved together with the data.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from glob import escape, has_magic
from math import isfinite
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Self

from revealed.errors import InvalidOption

METHODS = ("nfxp", "mce-irl", "ccp", "npl")
REWARDS = ("linear", "tabular", "neural")
ACTIVATIONS = ("relu", "tanh", "softplus", "sigmoid", "gelu", "silu", "elu")
PERIODS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
REQUIRED = ("panel", "id", "time", "state", "action")
DISCOUNT = 0.95


def _option(
    kind: str,
    default: Any,
    help: str,
    offered: tuple[str, ...] = (),
    metavar: str = "",
    path: bool = False,
    least: float | None = None,
) -> Any:
    """A field with what the command line and the reader of files must know of it. Kinds: text, texts, number, count
    (a whole number), counts, flag."""
    about = {"kind": kind, "help": help, "offered": offered, "metavar": metavar, "path": path, "least": least}
    return field(default=default, metadata=about)


@dataclass(frozen=True)
class Description:
    """Which data, which model, which reward, which method; made by hand, by `from_flags` or by `from_toml`."""

    # the data
    panel: tuple[str, ...] = _option(
        "texts", (), "The decisions: CSV or Parquet files, or a glob in quotes.", metavar="PANEL", path=True
    )
    id: str | None = _option("text", None, "Column that says who decides.", metavar="COLUMN")
    time: str | None = _option("text", None, "Column that says when; it orders the rows.", metavar="COLUMN")
    state: tuple[str, ...] = _option("texts", (), "Column of the state; several make one state.", metavar="COLUMN")
    action: tuple[str, ...] = _option("texts", (), "Column of the choice; several make one.", metavar="COLUMN")
    next_state: tuple[str, ...] = _option(
        "texts",
        (),
        "Column that says where a decision led.  [default: none; with --goal next_STATE, where PANEL has it]",
        metavar="COLUMN",
    )
    weight: str | None = _option("text", None, "Column of weights of rows.", metavar="COLUMN")
    period: str | None = _option("text", None, "Between two decisions, where times are dates.", PERIODS)
    gaps: str = _option("text", "break", "A gap in time breaks a trajectory, or is an error.", ("break", "error"))
    bins: tuple[str, ...] = _option(
        "texts",
        (),
        "Bins of a continuous state column: miles=90 (equally wide), miles=quantile:20, miles=edges:0,5,10.",
        metavar="COLUMN=BINS",
    )
    goal: tuple[str, ...] = _option(
        "texts", (), "Column that says where a trip is heading, a state; it ends there.", metavar="COLUMN"
    )
    # a road network
    network: str | None = _option(
        "text",
        None,
        "CSV or Parquet file of links; PANEL then has a row for each link of a trip, which goes to its last.",
        metavar="FILE",
        path=True,
    )
    link: tuple[str, ...] = _option("texts", (), "Column of the link's id.  [default: link]", metavar="COLUMN")
    from_node: str | None = _option("text", None, "Column of where a link starts.  [default: from]", metavar="COLUMN")
    to_node: str | None = _option("text", None, "Column of where a link ends.  [default: to]", metavar="COLUMN")
    turns: str | None = _option(
        "text",
        None,
        "File of the turns that are allowed; without it, all where links meet.",
        metavar="FILE",
        path=True,
    )
    turn_from: str | None = _option("text", None, "Column of the link left.  [default: from_link]", metavar="COLUMN")
    turn_to: str | None = _option("text", None, "Column of the link entered.  [default: to_link]", metavar="COLUMN")
    nodes: str | None = _option("text", None, "File of nodes with columns node, x, y.", metavar="FILE", path=True)
    u_turns: bool | None = _option("flag", None, "Turning back is possible everywhere.  [default: it is]")
    arrivals: bool | None = _option("flag", None, "Trips may pass their last link before they end there.")
    trip: tuple[str, ...] = _option("texts", (), "Column of the trip's id.  [default: trip]", metavar="COLUMN")
    sequence: str | None = _option(
        "text", None, "Column that orders the links of a trip.  [default: sequence]", metavar="COLUMN"
    )
    trip_link: tuple[str, ...] = _option(
        "texts", (), "Column of the link in PANEL, where it is not called as in --network.", metavar="COLUMN"
    )
    traveller: str | None = _option("text", None, "Column of whose trip it is.  [default: anybody's]", metavar="COLUMN")
    bad_trips: str | None = _option(
        "text",
        None,
        "Trips with unknown links or turns, or that pass their last link: an error, or left out.  [default: error]",
        ("error", "drop"),
    )
    # the reward
    features: str | None = _option(
        "text",
        None,
        "CSV or Parquet file of features, a row per state (or per state and action), under the same column names.",
        metavar="FILE",
        path=True,
    )
    feature_state: tuple[str, ...] = _option(
        "texts", (), "Columns of the features file that hold the state, where their names differ.", metavar="COLUMN"
    )
    columns: tuple[str, ...] = _option("texts", (), "A feature to use; without it, all.", metavar="COLUMN")
    constants: bool = _option("flag", False, "Add a constant for each action but the first.")
    coordinates: tuple[str, ...] = _option(
        "texts", (), "Two columns of the features file that place states on a map, as in x,y.", metavar="X,Y"
    )
    reward: str | None = _option(
        "text", None, "linear in features, one weight per state (tabular), or a network.  [default: linear]", REWARDS
    )
    hidden: tuple[int, ...] = _option("counts", (32, 16), "Units of a hidden layer.", metavar="UNITS", least=1)
    activation: str = _option("text", "tanh", "How units of a network respond; relu is the paper's.", ACTIVATIONS)
    # the model
    discount: float = _option("number", None, f"The discount factor γ.  [default: {DISCOUNT}; on a road network 1]")
    transitions: str | None = _option(
        "text", None, "Table of transition probabilities; without it they are estimated.", metavar="FILE", path=True
    )
    probability: str = _option("text", "probability", "Column of that table.", metavar="COLUMN")
    smoothing: float = _option("number", 0.0, "Weight of what follows a state under any action.", least=0.0)
    kernel: float | None = _option("number", None, "Bandwidth of a kernel over the states' coordinates.", least=0.0)
    unseen: str = _option(
        "text",
        "infeasible",
        "What nobody chose in a state: not offered, leads nowhere (stay), or an error.",
        ("infeasible", "stay", "error"),
    )
    terminal: tuple[str, ...] = _option("texts", (), "A state in which everything ends.", metavar="LABEL")
    horizon: int | None = _option("count", None, "Decisions per trajectory, where time runs out.", least=1)
    # the method
    method: str = _option("text", "nfxp", "The estimator.", METHODS)
    updates: int | None = _option("count", None, "Maximisations of NPL; by default until it settles.", least=1)
    first_step: str = _option(
        "text",
        "auto",
        "Policy of CCP and NPL's start: frequency or, with goals, logit (auto), or one of these.",
        ("auto", "frequency", "smoothed", "kernel", "logit"),
    )
    weighting: str = _option("text", "sample", "What is matched.", ("sample", "occupancy"))
    l2: float | None = _option(
        "number",
        None,
        "Weight of the penalty on the squared parameters.  [default: 0; of a network 4/n for n decisions]",
        least=0.0,
    )
    tol: float | None = _option("number", None, "Largest gradient of an estimate.", least=0.0)
    max_iter: int | None = _option("count", None, "Iterations, at most.", least=1)
    optimizer: str = _option("text", "auto", "The search.", ("auto", "newton", "lbfgs", "adam"))
    start: str = _option("text", "zero", "Where NFXP begins.", ("zero", "ccp"))
    # the errors
    errors: str | None = _option(
        "text",
        None,
        "Kind of standard errors.  [default: hessian; of trips with goals, clusters of travellers or trips]",
        ("hessian", "opg", "robust", "cluster", "bootstrap"),
    )
    cluster: str | None = _option(
        "text",
        None,
        "Column of PANEL by which errors are clustered, or resampled with --errors bootstrap.  [default: who decides]",
        metavar="COLUMN",
    )
    joint: bool = _option("flag", False, "Count the noise in estimated transitions.")
    reps: int = _option("count", 400, "Replications of the bootstrap.", least=2)
    seed: int = _option("count", 0, "Of the bootstrap and of a network's start.", least=0)
    # the result
    out: str | None = _option("text", None, "Folder for the results.", metavar="DIR", path=True)

    def __post_init__(self) -> None:
        for one in fields(self):
            value = _checked(one.name, getattr(self, one.name), one.metadata)
            object.__setattr__(self, one.name, value)
        object.__setattr__(self, "coordinates", _two_columns(self.coordinates))
        if self.discount is None:
            object.__setattr__(self, "discount", 1.0 if self.on_roads else DISCOUNT)
        for name in REQUIRED[:1] if self.on_roads else REQUIRED:
            if not getattr(self, name):
                about = type(self).__dataclass_fields__[name].metadata["help"].rstrip(".").lower()
                remedy = f"Give it as {flag(name)}, or as {key(name)} in the file of --config."
                if name == "panel":
                    remedy = 'As in: revealed fit trips.csv …, or as panel = "trips.csv" in the file of --config.'
                raise InvalidOption(flag(name), about, "nothing", remedy=remedy)
        if not 0.0 <= self.discount <= 1.0:
            raise InvalidOption("--discount", "a number in [0, 1]", repr(self.discount))

    @property
    def on_roads(self) -> bool:
        """Whether the panel holds trips on a road network."""
        return bool(self.network or self.turns)

    @classmethod
    def from_flags(cls, given: Mapping[str, Any], config: str | os.PathLike[str] | None = None) -> Self:
        """From what was said on the command line (None and empty lists: nothing) over what a file says."""
        return cls(**((read_toml(cls, config) if config is not None else {}) | said_in(given)))

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str], **changes: Any) -> Self:
        """From a file; `changes` come over it."""
        return cls.from_flags(changes, path)

    def to_toml(self, folder: str | os.PathLike[str]) -> str:
        """Every option that has a value, for a file in `folder`, to which paths are relative."""
        lines = []
        for one in fields(self):
            value = getattr(self, one.name)
            if value is None or value == one.default == ():
                continue
            if one.metadata["path"]:
                value = _seen_from(value, folder)
            lines.append(f"{key(one.name)} = {_toml(value)}")
        return "\n".join(lines) + "\n"


def said_in(given: Mapping[str, Any]) -> dict[str, Any]:
    """The flags that were given; numbers of a list may have commas between them."""
    said = {name: value for name, value in given.items() if value is not None and value not in ([], ())}
    about = option_fields()
    return {name: _counts(name, value) if about[name]["kind"] == "counts" else value for name, value in said.items()}


def _counts(name: str, given: Any) -> Any:
    """`32,16` as two numbers."""
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        return given
    try:
        return [int(part) for text in texts for part in text.split(",")]
    except ValueError:
        raise InvalidOption(flag(name), "whole numbers, as in 32,16", repr(",".join(texts))) from None


def _two_columns(given: tuple[str, ...]) -> tuple[str, ...]:
    """None, or the names of two columns, in one word or in two."""
    parts = tuple(part.strip() for text in given for part in text.split(","))
    if given and (len(parts) != 2 or len(set(parts)) < 2 or not all(parts)):
        raise InvalidOption("--coordinates", "two columns, as in x,y", repr(",".join(given)))
    return parts


def flag(name: str) -> str:
    """What an option is called on the command line."""
    return "PANEL" if name == "panel" else "--" + key(name)


def key(name: str) -> str:
    """What an option is called in a file."""
    return name.replace("_", "-")


def option_fields() -> dict[str, Any]:
    """Name → what there is to know of an option, with its default."""
    return {one.name: dict(one.metadata) | {"default": one.default} for one in fields(Description)}


# values


def _checked(name: str, value: Any, about: Mapping[str, Any], where: str = "") -> Any:
    """The value in its own type, or an error that names the option and `where` it was read."""
    kind = about["kind"]
    if kind in ("texts", "counts"):
        many = [value] if isinstance(value, str | os.PathLike) or _is_whole(value) else value
        if not isinstance(many, list | tuple):
            raise InvalidOption(flag(name), _EXPECTED[kind], repr(value) + where)
        return tuple(_one(name, part, kind[:-1], about, where) for part in many)
    return None if value is None else _one(name, value, kind, about, where)


def _one(name: str, value: Any, kind: str, about: Mapping[str, Any], where: str) -> Any:
    """One value of a kind."""
    value = os.fspath(value) if isinstance(value, os.PathLike) else value
    right = {"text": isinstance(value, str) and bool(value), "flag": isinstance(value, bool), "count": _is_whole(value)}
    if not right.get(kind, _is_number(value)):
        raise InvalidOption(flag(name), _EXPECTED[kind], repr(value) + where)
    if about["offered"] and value not in about["offered"]:
        near = get_close_matches(str(value), about["offered"], 1)
        remedy = f"Did you mean {near[0]}?" if near else None
        raise InvalidOption(flag(name), f"one of {', '.join(about['offered'])}", repr(value) + where, remedy=remedy)
    if about["least"] is not None and value < about["least"]:
        raise InvalidOption(flag(name), f"{_EXPECTED[kind]}, at least {about['least']:g}", repr(value) + where)
    return float(value) if kind == "number" else str(value) if kind == "text" else value  # no member of an enumeration


# as in `checks`, without NumPy: help must not wait for it


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and _is_plain(value)


def _is_number(value: Any) -> bool:
    if not isinstance(value, Real) or isinstance(value, bool) or not _is_plain(value):
        return False
    try:
        return isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False


def _is_plain(value: Any) -> bool:
    """Python's own int or float, or NumPy's: no fraction, and no duration, which NumPy counts among whole numbers."""
    return isinstance(value, int | float) or getattr(getattr(value, "dtype", None), "kind", "") in ("i", "u", "f")


_EXPECTED = {
    "text": "text",
    "texts": "text, or a list of texts",
    "number": "a number",
    "count": "a whole number",
    "counts": "a whole number, or a list of them",
    "flag": "true or false",
}


# files


def read_toml(kind: type[Description], path: str | os.PathLike[str]) -> dict[str, Any]:
    """The options in a file, paths seen from where we are."""
    file = Path(path)
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InvalidOption("--config", "a TOML file that can be read", f"{file}: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidOption("--config", "a TOML file", f"{file}: {error}") from error
    options = kind.__dataclass_fields__
    out = {}
    for word, value in found.items():
        name = word.replace("-", "_")
        if name not in options:
            near = get_close_matches(word, [key(one) for one in options], 1)
            remedy = f"Did you mean {near[0]}?" if near else "Its options are those of revealed fit --help."
            raise InvalidOption("--config", "options of revealed fit", f"{word!r} in {file}", remedy=remedy)
        if name in out:
            raise InvalidOption("--config", "each option once", f"{key(name)} and {name} in {file}")
        value = _checked(name, value, options[name].metadata, f" in {file}")
        out[name] = _seen_from_here(value, file.parent) if options[name].metadata["path"] else value
    return out


def _seen_from_here(value: Any, folder: Path) -> Any:
    if not isinstance(value, str):
        return tuple(_seen_from_here(one, folder) for one in value)
    own = os.path.normpath(folder / value)
    if has_magic(value) and not os.path.exists(own):
        return os.path.normpath(os.path.join(escape(str(folder)), value))
    return own


def _seen_from(value: Any, folder: str | os.PathLike[str]) -> Any:
    """Paths as a file in `folder` names them; with slashes, which every system reads."""
    if not isinstance(value, str):
        return [_seen_from(one, folder) for one in value]
    try:
        return os.path.relpath(value, folder).replace(os.sep, "/")
    except ValueError:  # another drive
        return os.path.abspath(value)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return repr(value)
