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
from revealed.files import as_path
from revealed.voices import arg, either, shown

METHODS = ("nfxp", "mce-irl", "ccp", "npl")
REWARDS = ("linear", "tabular", "neural")
ACTIVATIONS = ("relu", "tanh", "softplus", "sigmoid", "gelu", "silu", "elu")
PERIODS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
REQUIRED = ("panel", "id", "time", "state", "action")
DISCOUNT = 0.95
DIGITS = 100  # of a time that is a whole number, at most
MOST_BYTES = 1 << 23  # of a file of options


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
    (a whole number), counts, flag, time (a whole number, or text such as a date)."""
    about = {"kind": kind, "help": help, "offered": offered, "metavar": metavar, "path": path, "least": least}
    return field(default=default, metadata=about)


@dataclass(frozen=True)
class Description:
    """Which data, which model, which reward, which method; made by hand, by `from_flags` or by `from_toml`."""

    # the data
    panel: tuple[str, ...] = _option(
        "texts", (), "Decisions: CSV or Parquet files, or a quoted glob pattern.", metavar="PANEL", path=True
    )
    id: str | None = _option("text", None, "Column of the decision maker's id.", metavar="COLUMN")
    time: str | None = _option("text", None, "Time column; orders the rows of each id.", metavar="COLUMN")
    state: tuple[str, ...] = _option("texts", (), "State column; several columns form one state.", metavar="COLUMN")
    action: tuple[str, ...] = _option("texts", (), "Action column; several columns form one action.", metavar="COLUMN")
    next_state: tuple[str, ...] = _option(
        "texts",
        (),
        "Column of the state that a decision led to.  [default: none; with --goal, next_STATE if PANEL has it]",
        metavar="COLUMN",
    )
    weight: str | None = _option("text", None, "Column of row weights.", metavar="COLUMN")
    period: str | None = _option(
        "text", None, "Time between decisions, for dates and for months such as 202407.", PERIODS
    )
    gaps: str = _option(
        "text",
        "break",
        "Gap in time: break the trajectory (the row after it is not a start), or report an error.",
        ("break", "error"),
    )
    episode: str | None = _option(
        "text", None, "Column that distinguishes the episodes of one id.  [default: each id is one]", metavar="COLUMN"
    )
    bins: tuple[str, ...] = _option(
        "texts",
        (),
        "Bins for a continuous state column: miles=90 (equal width), miles=quantile:20, miles=edges:0,5,10.",
        metavar="COLUMN=BINS",
    )
    goal: tuple[str, ...] = _option("texts", (), "Column of a trip's goal, the state where it ends.", metavar="COLUMN")
    # a road network
    network: str | None = _option(
        "text",
        None,
        "CSV or Parquet file of road links. PANEL then has one row per link of a trip; the last link is its goal.",
        metavar="FILE",
        path=True,
    )
    link: tuple[str, ...] = _option("texts", (), "Link id column.  [default: link]", metavar="COLUMN")
    from_node: str | None = _option("text", None, "Column of a link's start node.  [default: from]", metavar="COLUMN")
    to_node: str | None = _option("text", None, "Column of a link's end node.  [default: to]", metavar="COLUMN")
    turns: str | None = _option(
        "text",
        None,
        "File of allowed turns.  [default: all turns between links that meet]",
        metavar="FILE",
        path=True,
    )
    turn_from: str | None = _option(
        "text", None, "Column of the link a turn leaves.  [default: from_link]", metavar="COLUMN"
    )
    turn_to: str | None = _option(
        "text", None, "Column of the link a turn enters.  [default: to_link]", metavar="COLUMN"
    )
    nodes: str | None = _option(
        "text", None, "File of node coordinates, with columns node, x, y.", metavar="FILE", path=True
    )
    u_turns: bool | None = _option("flag", None, "Allow U-turns everywhere.  [default: --u-turns]")
    arrivals: bool | None = _option("flag", None, "Let trips pass through their last link before they end there.")
    trip: tuple[str, ...] = _option("texts", (), "Trip id column.  [default: trip]", metavar="COLUMN")
    sequence: str | None = _option(
        "text", None, "Column that orders the links of a trip.  [default: sequence]", metavar="COLUMN"
    )
    trip_link: tuple[str, ...] = _option(
        "texts", (), "Link column of PANEL, if its name differs from --link.", metavar="COLUMN"
    )
    traveller: str | None = _option(
        "text", None, "Traveller id column.  [default: none; each trip counts as one]", metavar="COLUMN"
    )
    bad_trips: str | None = _option(
        "text",
        None,
        "What to do with trips that use unknown links or turns, or pass their last link: report an error, or drop them."
        "  [default: error]",
        ("error", "drop"),
    )
    # the reward
    features: str | None = _option(
        "text",
        None,
        "CSV or Parquet file of features, one row per state (or state and action), named as in PANEL.",
        metavar="FILE",
        path=True,
    )
    feature_state: tuple[str, ...] = _option(
        "texts", (), "State column of the features file, if its name differs from --state.", metavar="COLUMN"
    )
    columns: tuple[str, ...] = _option("texts", (), "Features to use.  [default: all]", metavar="COLUMN")
    constants: bool = _option("flag", False, "Add a constant for every action except the first.")
    coordinates: tuple[str, ...] = _option(
        "texts", (), "Two columns of the features file with the coordinates of each state, as in x,y.", metavar="X,Y"
    )
    reward: str | None = _option(
        "text",
        None,
        "Linear in features, one weight per state (tabular), or a neural network.  [default: linear]",
        REWARDS,
    )
    hidden: tuple[int, ...] = _option(
        "counts", (32, 16), "Units per hidden layer of a neural reward.", metavar="UNITS", least=1
    )
    activation: str = _option(
        "text", "tanh", "Activation function of a neural reward; the paper uses relu.", ACTIVATIONS
    )
    # the model
    discount: float = _option(
        "number", None, f"Discount factor γ, per decision.  [default: {DISCOUNT}; 1 on a road network]"
    )
    transitions: str | None = _option(
        "text", None, "File of transition probabilities.  [default: estimated from PANEL]", metavar="FILE", path=True
    )
    probability: str = _option("text", "probability", "Probability column of the --transitions file.", metavar="COLUMN")
    smoothing: float = _option(
        "number", 0.0, "Pseudo-count that shrinks transitions towards the average over actions.", least=0.0
    )
    kernel: float | None = _option(
        "number", None, "Bandwidth of a kernel estimate of transitions, in units of --coordinates (or bins).", least=0.0
    )
    unseen: str = _option(
        "text",
        "infeasible",
        "Actions never taken in a state: infeasible, stay in the state, or report an error.",
        ("infeasible", "stay", "error"),
    )
    terminal: tuple[str, ...] = _option("texts", (), "Terminal state.", metavar="LABEL")
    horizon: int | None = _option(
        "count", None, "Finite horizon: number of decisions per trajectory.  [default: infinite]", least=1
    )
    first_time: int | str | None = _option(
        "time",
        None,
        "With --horizon: the time that is period 0, such as 18 or 2020-01; or own: each id starts at 0.",
        metavar="TIME",
    )
    # the method
    method: str = _option("text", "nfxp", "Estimator.", METHODS)
    updates: int | None = _option("count", None, "Number of NPL updates.  [default: until the policy settles]", least=1)
    first_step: str = _option(
        "text",
        "auto",
        "First-step policy estimate for CCP and NPL; auto is frequency, or logit with goals.",
        ("auto", "frequency", "smoothed", "kernel", "logit"),
    )
    weighting: str = _option(
        "text",
        "sample",
        "Weight states by observed visits (sample) or by discounted occupancy.",
        ("sample", "occupancy"),
    )
    l2: float | None = _option(
        "number",
        None,
        "L2 penalty on the parameters.  [default: 0; 4/n for a neural reward and n decisions]",
        least=0.0,
    )
    tol: float | None = _option(
        "number",
        None,
        "Gradient-norm tolerance.  [default: by optimizer: newton 1e-9, lbfgs 1e-6 (networks 1e-3), adam 1e-4; smaller "
        "where the search would end too far from the maximum]",
        least=0.0,
    )
    max_iter: int | None = _option(
        "count",
        None,
        "Maximum number of iterations.  [default: by optimizer: newton 200, lbfgs 2000 (networks 5000), adam 5000]",
        least=1,
    )
    optimizer: str = _option(
        "text", "auto", "Optimizer; auto picks one for the reward.", ("auto", "newton", "lbfgs", "adam")
    )
    start: str = _option("text", "zero", "Starting values of NFXP: zero, or the CCP estimate.", ("zero", "ccp"))
    # the errors
    errors: str | None = _option(
        "text",
        None,
        "Standard errors.  [default: hessian; for trips with goals, clustered by traveller or trip]",
        ("hessian", "opg", "robust", "cluster", "bootstrap"),
    )
    cluster: str | None = _option(
        "text",
        None,
        "Column of PANEL to cluster by (or to resample by, with --errors bootstrap).  [default: --id]",
        metavar="COLUMN",
    )
    joint: bool = _option("flag", False, "Account for sampling error in the estimated transitions.")
    reps: int = _option("count", 400, "Bootstrap replications.", least=2)
    seed: int = _option("count", 0, "Random seed of the bootstrap and of a neural reward's starting weights.", least=0)
    # the result
    out: str | None = _option("text", None, "Output folder.  [default: print only]", metavar="DIR", path=True)

    def __post_init__(self) -> None:
        for one in fields(self):
            value = _checked(one.name, getattr(self, one.name), one.metadata)
            object.__setattr__(self, one.name, value)
        object.__setattr__(self, "coordinates", _two_columns(self.coordinates))
        if self.discount is None:
            object.__setattr__(self, "discount", 1.0 if self.on_roads else DISCOUNT)
        for name in REQUIRED[:1] if self.on_roads else REQUIRED:
            if not getattr(self, name):
                about = type(self).__dataclass_fields__[name].metadata["help"].rstrip(".")
                about = about[0].lower() + about[1:]
                raise InvalidOption.conflict(name, f"is required ({about})", remedy=_give(name))
        if not 0.0 <= self.discount <= 1.0:
            raise InvalidOption(
                "discount", "a number in [0, 1]", shown(self.discount), remedy=f"For example: {arg('discount', 0.95)}."
            )

    @property
    def on_roads(self) -> bool:
        """Whether the panel holds trips on a road network."""
        return bool(self.network or self.turns)

    @classmethod
    def from_flags(cls, given: Mapping[str, Any], config: str | os.PathLike[str] | None = None) -> Self:
        """From the command line (None and empty lists: not given), which overrides a file."""
        return cls(**((read_toml(cls, config) if config is not None else {}) | said_in(given)))

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str], **changes: Any) -> Self:
        """From a file; `changes` override its options."""
        return cls.from_flags(changes, path)

    def to_toml(self, folder: str | os.PathLike[str]) -> str:
        """Every option that has a value, for a file in `folder`, to which paths are relative."""
        folder, lines = as_path("folder", folder), []
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
    from revealed.checks import is_mapping  # which load NumPy: `--help` does without
    from revealed.labels import unknown

    if not is_mapping(given):
        raise InvalidOption("given", "a dict of options", type(given).__name__)
    nothing = ([], ())
    said = {
        name: value
        for name, value in given.items()
        if value is not None and not (isinstance(value, list | tuple) and value in nothing)
    }
    about = option_fields()
    odd = next((name for name in said if name not in about), None)
    if odd is not None:
        raise unknown("rv.Recipe", "option", str(odd), tuple(about))
    return {name: _counts(name, value) if about[name]["kind"] == "counts" else value for name, value in said.items()}


def _counts(name: str, given: Any) -> Any:
    """`32,16` as two numbers."""
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        return given
    try:
        return [int(part) for text in texts for part in text.split(",")]
    except ValueError:
        raise InvalidOption(name, "whole numbers, as in 32,16", shown(",".join(texts))) from None


def _give(name: str) -> str:
    """How an option is given that is missing."""
    if name == "panel":
        return either(
            'For example: panel="trips.csv".', f'For example: revealed fit trips.csv …, or panel = "trips.csv" {_FILE}.'
        )
    return either(f"Give it as {arg(name)}.", f"Give it as {arg(name)}, or as {key(name)} {_FILE}.")


_FILE = "in the --config file"
CONFIG = either("path", "--config")  # of `from_toml`


def _two_columns(given: tuple[str, ...]) -> tuple[str, ...]:
    """None, or the names of two columns, in one word or in two."""
    parts = tuple(part.strip() for text in given for part in text.split(","))
    if given and (len(parts) != 2 or len(set(parts)) < 2 or not all(parts)):
        raise InvalidOption("coordinates", "two columns, as in x,y", shown(",".join(given)))
    return parts


def flag(name: str) -> str:
    """What an option is called on the command line."""
    return "PANEL" if name == "panel" else "--" + key(name)


def flags() -> dict[str, str]:
    """The table of flags: what the command line calls arguments of the library, under their names there."""
    return {name: flag(name) for name in option_fields()} | OTHER_NAMES


OTHER_NAMES = {"kind": "--errors", "keep": "--cluster", "by": "--cluster", "bandwidth": "--kernel"}


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
            raise InvalidOption(name, _EXPECTED[kind], shown(value) + where)
        return tuple(_one(name, part, kind[:-1], about, where) for part in many)
    return None if value is None else _one(name, value, kind, about, where)


def _one(name: str, value: Any, kind: str, about: Mapping[str, Any], where: str) -> Any:
    """One value of a kind."""
    value = os.fspath(value) if isinstance(value, os.PathLike) else value
    if kind == "time":
        return _as_time(name, value, where)
    right = {"text": isinstance(value, str) and bool(value), "flag": isinstance(value, bool), "count": _is_whole(value)}
    if not right.get(kind, _is_number(value)):
        raise InvalidOption(name, _EXPECTED[kind], shown(value) + where)
    if about["offered"] and value not in about["offered"]:
        near = get_close_matches(str(value), about["offered"], 1)
        remedy = f"Did you mean {near[0]}?" if near else None
        raise InvalidOption(name, f"one of {', '.join(about['offered'])}", shown(value) + where, remedy=remedy)
    if about["least"] is not None and value < about["least"]:
        raise InvalidOption(name, f"{_EXPECTED[kind]}, at least {about['least']:g}", shown(value) + where)
    return float(value) if kind == "number" else str(value) if kind == "text" else value  # no member of an enumeration


def _as_time(name: str, value: Any, where: str) -> int | str:
    """A time as a panel may have it: a whole number, or text; what looks like a number is one."""
    if _is_whole(value) and abs(int(value)) < 10**DIGITS:
        return int(value)
    number = isinstance(value, str) and value.removeprefix("-").isdecimal()
    if not isinstance(value, str) or not value or (number and len(value) > DIGITS):
        raise InvalidOption(name, _EXPECTED["time"], shown(value) + where)
    return int(value) if number else value


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
    "texts": "a string, or a list of strings",
    "number": "a number",
    "count": "a whole number",
    "counts": "a whole number, or a list of them",
    "flag": "true or false",
    "time": "a whole number, a date, or own",
}


# files


def read_toml(kind: type[Description], path: str | os.PathLike[str]) -> dict[str, Any]:
    """The options in a file, paths seen from where we are."""
    file = as_path(CONFIG, path)
    try:
        with file.open("rb") as opened:  # a device has no end
            content = opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise InvalidOption(CONFIG, "a TOML file that can be read", f"{file}: {error.strerror or error}") from error
    if len(content) > MOST_BYTES:
        raise InvalidOption(CONFIG, f"a TOML file of at most {MOST_BYTES} bytes", f"{file}, which has more")
    try:
        found = tomllib.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:  # no TOML, no UTF-8, a number too long or lists too deep for Python
        raise InvalidOption(CONFIG, "a TOML file", f"{file}: {error}") from error
    options = kind.__dataclass_fields__
    out = {}
    for word, value in found.items():
        name = word.replace("-", "_")
        if name not in options:
            near = get_close_matches(word, [key(one) for one in options], 1)
            remedy = (
                f"Did you mean {near[0]}?"
                if near
                else either("Its options are those of rv.Recipe.", "Its options are those of revealed fit --help.")
            )
            raise InvalidOption(
                CONFIG, either("options of rv.Recipe", "options of revealed fit"), f"{word!r} in {file}", remedy=remedy
            )
        if name in out:
            raise InvalidOption(CONFIG, "every option only once", f"{key(name)} and {name} in {file}")
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
