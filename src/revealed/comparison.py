"""Fits side by side: one column each, a row per parameter, standard errors in brackets below."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import as_list, is_mapping, require_flag
from revealed.demonstrations import Demonstrations
from revealed.errors import InvalidInput
from revealed.estimates import Estimates, FitLike, read_estimates
from revealed.labels import FEW, how_many, sequence_of
from revealed.matching import decisions_on
from revealed.mdp import MDP
from revealed.sheet import Printed, Row, Sheet, clean, number_column
from revealed.summary import (
    MOST_ROWS,
    clusters_of,
    counted,
    first_step_parts,
    first_step_trust,
    first_step_word,
    has_trips,
    is_pseudo,
    poor_fit_words,
)
from revealed.voices import shown

if TYPE_CHECKING:
    import pandas as pd

STARS = ((0.01, "***"), (0.05, "**"), (0.1, "*"))
NEEDED = ("theta", "llf", "status", "reward_model", "demonstrations")  # what tells a fit from other things
COUNTED = ("Observations", "Agents", "Trips", "Decisions", "Travellers", "Goals")
Cell = tuple[str, str]  # an estimate, and its standard error in brackets


def compare_fits(
    fits: Any,
    *more: Any,
    names: Sequence[str] | None = None,
    stars: bool = False,
) -> Comparison:
    """Fits side by side: estimates with standard errors in brackets, then likelihoods, information criteria and status.

    Parameters
    ----------
    fits : a list of fits, or a dictionary from names to fits; or fits one by one, `compare_fits(a, b, c)`.
    names : one per fit; by default the methods. Duplicate names are distinguished by what differs between the fits
        ("NFXP (γ = 0)"), or numbered.
    stars : mark estimates by their p-values: * below 0.1, ** below 0.05, *** below 0.01.
    """
    if more and _is_fit(fits):
        fits = [fits, *more]
    elif more:
        names, stars = _positional(list(more), names, stars)
    require_flag("stars", stars)
    if is_mapping(fits):
        if names is not None:
            raise InvalidInput.conflict("names", "cannot be combined with a dictionary of fits, whose keys are names")
        names, fits = [str(name) for name in fits], list(fits.values())
    listed = _as_fits(fits)
    return Comparison(listed, _numbered(_told_apart(_as_names(names, listed), listed)), stars)


class Comparison(Printed):
    """The printed form of several fits; `to_frame()` and `statistics` are its numbers."""

    def __init__(self, fits: Sequence[FitLike], names: Sequence[str], stars: bool = False) -> None:
        self._fits, self._names, self._stars = tuple(fits), tuple(names), stars

    def to_frame(self) -> pd.DataFrame:
        """One row per parameter, and per fit the columns coef and std err; NaN where a fit has no such parameter."""
        import pandas as pd

        columns = {}
        for name, fit in zip(self._names, self._fits, strict=True):
            found = read_estimates(fit)
            for head, values in (("coef", found.coef), ("std err", found.bse)):
                columns[name, head] = pd.Series(values, index=list(found.names))
        return pd.DataFrame(columns, index=_union(fit.reward_model.names for fit in self._fits))

    @property
    def statistics(self) -> pd.DataFrame:
        """One row per statistic, one column per fit."""
        import pandas as pd

        return pd.DataFrame(dict(zip(self._names, _statistics(self._fits), strict=True)), dtype=object)

    def _sheet(self) -> Sheet:
        found = [read_estimates(fit) if fit.theta.size <= MOST_ROWS else None for fit in self._fits]
        rows = _union(one.names for one in found if one is not None)
        cells = [_cells(one, self._stars) if one is not None else {} for one in found]
        coefficients = tuple(line for row in rows for line in _two_lines(row, cells))
        return Sheet(
            caption="Estimates: " + _listed(self._names),
            head=("", *self._names),
            blocks=tuple(block for block in (coefficients, _statistics_rows(self._fits, found)) if block),
            notes=tuple(self._notes(found)),
        )

    def _notes(self, found: Sequence[Estimates | None]) -> list[str]:
        long = [name for name, one in zip(self._names, found, strict=True) if one is None]
        bare = [name for name, one in zip(self._names, found, strict=True) if one is not None and one.reason]
        shrunk = self._those(lambda fit: fit.options.get("l2", 0.0) > 0.0)
        notes = [
            "Standard errors in brackets." if any(one is not None and not one.reason for one in found) else "",
            "* p < 0.1, ** p < 0.05, *** p < 0.01." if self._stars else "",
            f"Without standard errors: {_listed(bare)}. Their summaries say why." if bare else "",
            f"Too many parameters to list: {_listed(long)}." if long else "",
            _PENALISED.format(names=shrunk) if shrunk else "",
            *self._first_step_notes(),
            *self._status_notes(),
            _differences(self._fits),
        ]
        return [note for note in notes if note]

    def _first_step_notes(self) -> list[str]:
        found = []
        for trust, words in _TRUST.items():
            found.append((words, self._those(lambda fit, trust=trust: first_step_trust(fit) == trust)))
        found.append((_PSEUDO, self._those(is_pseudo)))
        return [words.format(names=names) for words, names in found if names]

    def _status_notes(self) -> list[str]:
        """How fits ended that did not converge, what statuses say beside, and what speaks against the model, each
        once."""
        found: dict[str, list[str]] = {}
        for name, fit in zip(self._names, self._fits, strict=True):
            ended = "" if fit.status.code == "converged" else fit.status.message
            for text in (ended, *fit.status.notes, poor_fit_words(fit)):
                found.setdefault(text, []).append(name)
        return [f"{_listed(names)}: " + text for text, names in found.items() if text]

    def _those(self, have: Callable[..., bool]) -> str:
        """The names of the fits that have something."""
        return _listed(name for name, fit in zip(self._names, self._fits, strict=True) if have(fit))


def _listed(names: Iterable[str]) -> str:
    """With semicolons, since a name may hold a comma."""
    return "; ".join(names)


# the table


def _cells(found: Estimates, stars: bool) -> dict[str, Cell]:
    """Per parameter an estimate and its error, with common decimals; spaces at the end bring points below points."""
    numbers = number_column([*found.coef, *found.bse])
    K = found.coef.size
    marks = [_stars(p) if stars else "" for p in found.p]
    room = 0 if found.reason else 3 if stars else 1  # for a closing bracket, or for stars
    estimates = [number + mark.ljust(room) for number, mark in zip(numbers[:K], marks, strict=True)]
    errors = [f"({number}){' ' * (room - 1)}" if room else "" for number in numbers[K:]]
    return dict(zip(found.names, zip(estimates, errors, strict=True), strict=True))


def _stars(p: float) -> str:
    return next((mark for limit, mark in STARS if p < limit), "")


def _two_lines(name: str, cells: Sequence[dict[str, Cell]]) -> tuple[Row, ...]:
    """A parameter's row and the row of its errors, which stays away where there are none."""
    pairs = [column.get(name, ("", "")) for column in cells]
    estimates, errors = (name, *(one for one, _ in pairs)), ("", *(two for _, two in pairs))
    return (estimates, errors) if any(errors) else (estimates,)


def _statistics(fits: Sequence[FitLike]) -> list[dict[str, Any]]:
    """One per fit; a row that is empty for all of them stays away."""
    columns = [_statistics_of(fit) for fit in fits]
    return [{key: value for key, value in one.items() if any(other[key] != "" for other in columns)} for one in columns]


def _statistics_of(fit: FitLike) -> dict[str, Any]:
    return {
        "Log likelihood": fit.llf,
        **(dict.fromkeys(COUNTED, "") | counted(fit)),
        "Parameters": fit.theta.size,
        "Pseudo R²": _known(fit.prsquared),
        "Hit rate": _known(fit.hit_rate),
        "AIC": fit.aic,
        "BIC": fit.bic,
        "Method": fit.method,
        "First step": first_step_word(fit),
        "Discount": fit.mdp.discount,
        "Covariance": _covariance_word(fit),
        "Status": fit.status.code,
        "Seconds": fit.seconds,
    }


def _statistics_rows(fits: Sequence[FitLike], found: Sequence[Estimates | None]) -> tuple[Row, ...]:
    columns = _statistics(fits)
    for column, one in zip(columns, found, strict=True):
        if one is None or one.reason:
            column["Covariance"] = "none"
    return tuple((key, *(_written(key, column[key]) for column in columns)) for key in columns[0])


def _written(key: str, value: Any) -> str:
    return "" if value == "" else _FORMATS.get(key, "{}").format(value)


def _known(value: float) -> Any:
    return value if np.isfinite(value) else ""


def _covariance_word(fit: FitLike) -> str:
    kind, joint = fit.errors
    told = fit.groups is not None or (kind == "cluster" and has_trips(fit))  # else agents, as everybody expects
    by = f" by {clusters_of(fit)[0]}" if told else ""
    return kind + by + (", joint" if joint else "")


def _union(names: Iterable[Iterable[str]]) -> list[str]:
    """All names once, in the order in which they first occur."""
    return list(dict.fromkeys(str(name) for some in names for name in some))


# what the fits have in common


def _differences(fits: Sequence[FitLike]) -> str:
    """Likelihoods of different data cannot be compared; empty where all fits saw the same decisions."""
    first, *others = fits
    if any(fit.nobs != first.nobs for fit in others):
        return _OTHER_DATA.format(what="different numbers of observations")
    decisions = [_decisions_of(fit, first) for fit in fits]
    tables = [np.asarray(demos.counts) for demos in decisions]
    if any(table.shape != tables[0].shape for table in tables):
        return _OTHER_DATA.format(what="different states or actions")
    if any(not np.array_equal(table, tables[0]) for table in tables):
        return _OTHER_DATA.format(what="different decisions")
    if len(set(map(_goals_of, decisions))) > 1:
        return _OTHER_DATA.format(what="different goals")
    if any(fit.options.get("weighting") == "occupancy" for fit in fits):
        return _WEIGHTED
    return ""


def _decisions_of(fit: FitLike, first: FitLike) -> Any:
    """What a fit saw, in the order of the first one's model."""
    demos, mdp = fit.demonstrations, getattr(first, "mdp", None)
    return decisions_on(demos, mdp) if isinstance(demos, Demonstrations) and isinstance(mdp, MDP) else demos


def _goals_of(demos: Any) -> bytes:
    """Where the trips of each decision are heading; empty where trips have no goals."""
    steps = getattr(demos, "steps", None)
    goal = getattr(steps, "goal", None)
    return b"" if goal is None else np.asarray(goal, dtype=np.int64).tobytes()


# the arguments


def _positional(more: list[Any], names: Any, stars: Any) -> tuple[Any, Any]:
    """`names` and `stars`, where they follow the fits without being named."""
    if len(more) > 2 or any(_is_fit(one) for one in more):
        got = f"{len(more) + 1} positional arguments"
        raise InvalidInput("fits", "one list of fits", got, remedy="For example: compare_fits([a, b, c], names=[...]).")
    if names is not None:
        raise InvalidInput.conflict("names", "is given twice: by its place and by its name")
    return more[0] if names is None else names, more[1] if len(more) == 2 else stars


def _as_fits(fits: Any) -> list[FitLike]:
    if _is_fit(fits):
        raise InvalidInput("fits", "a list of fits", "one fit", remedy="Put it into a list: compare_fits([fit]).")
    listed = as_list(fits)
    if not listed:
        raise InvalidInput("fits", "a list of fits, at least one", shown(fits))
    for k, fit in enumerate(listed):
        if not _is_fit(fit):
            remedy = "Call .fit(mdp, demonstrations) first." if hasattr(fit, "fit") else None
            raise InvalidInput("fits", "fits", type(fit).__name__, f"position {k}", remedy)
    return listed


def _is_fit(value: Any) -> bool:
    return not isinstance(value, type) and all(hasattr(value, name) for name in NEEDED)


def _as_names(names: Any, fits: Sequence[FitLike]) -> list[str]:
    if names is None:
        return [fit.method for fit in fits]
    listed = None if isinstance(names, str) else sequence_of(names)
    if listed is None or len(listed) != len(fits) or not all(isinstance(name, str | Number) for name in listed):
        raise InvalidInput("names", f"a list of {len(fits)} names, one per fit", shown(names))
    return [clean(name) for name in listed]


def _told_apart(names: Sequence[str], fits: Sequence[FitLike]) -> list[str]:
    """Names that occur more than once get what differs between their fits, as little as makes all of them differ."""
    out = list(names)
    for name in dict.fromkeys(names):
        same = [k for k, other in enumerate(names) if other == name]
        marks = [""] * len(same)
        for words in zip(*(_marks(fits[k]) for k in same), strict=True):
            if len(set(marks)) < len(same) and len(set(words)) > 1:
                marks = [", ".join(part for part in both if part) for both in zip(marks, words, strict=True)]
        for k, mark in zip(same, marks, strict=True):
            out[k] = f"{name} ({mark})" if mark else name
    return out


def _marks(fit: FitLike) -> tuple[str, ...]:
    """What a column can be told by, the most telling first."""
    l2 = fit.options.get("l2", 0.0)
    return (
        f"γ = {fit.mdp.discount:.10g}",
        str(fit.options.get("weighting")),
        ", ".join(part for part in first_step_parts(fit) if part),
        *_reward_marks(fit.reward_model),
        f"l2 = {l2:.3g}",
        "" if fit.settled is None else f"{fit.updates} updates",
        _covariance_word(fit),
    )


def _reward_marks(reward: Any) -> tuple[str, str]:
    """What kind of reward it is and how large; the names of its parameters, where they are few."""
    names = [str(name) for name in reward.names]
    K = len(names)
    if getattr(reward, "tabular", False):
        return f"a weight for each of {K} states", ""
    if getattr(reward, "linear", False):
        return how_many(K, "feature"), ", ".join(names) if K <= FEW else ""
    return f"{'network' if getattr(reward, 'network', False) else 'function'} of {how_many(K, 'parameter')}", ""


def _numbered(names: Sequence[str]) -> list[str]:
    """Names that occur more than once get a number that makes them differ."""
    taken = {name for name in names if names.count(name) == 1}
    out = []
    for name in names:
        if name not in taken or name in out:
            name = next(other for k in count(1) if (other := f"{name} ({k})") not in taken and other not in out)
        out.append(name)
    return out


_FORMATS = {"Log likelihood": "{:.3f}", "AIC": "{:.2f}", "BIC": "{:.2f}", "Discount": "{:.10g}", "Seconds": "{:.3f}"}
_FORMATS |= {"Pseudo R²": "{:.4f}", "Hit rate": "{:.4f}"}

_OTHER_DATA = "The fits are on different data ({what}): their log likelihoods, AIC and BIC cannot be compared."
_WEIGHTED = "With occupancy weighting the log likelihood is not what was maximised."
_PENALISED = "Penalised; the standard errors ignore the shrinkage: {names}."
_TRUST = {
    "size": "With a first step, whose finite-sample bias the standard errors ignore: {names}.",
    "form": "Valid only if the first step is correctly specified; otherwise a bias remains that more data do not "
    "remove: {names}.",
    "given": "With a given first step, which is taken as the truth: {names}.",
}
_PSEUDO = (
    "A first step helps predict choices, so log likelihood, AIC and BIC are not comparable with the others: {names}."
)
