"""The printed form of a fit: estimates with their errors, how they were found, and what to keep in mind about them.

A summary never raises because an error has no formula: it shows what there is and says why the rest is missing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from revealed.checks import Floats, as_number
from revealed.diagnosis import Status
from revealed.errors import InvalidInput, InvalidOption, RevealedError
from revealed.sheet import Pair, Printed, Row, Sheet, number_column, probability, ratio

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 30  # of a summary; longer parameter vectors are shown by their quantiles
MOST_NAMED = 100  # parameters of a linear reward among which weak directions are looked for
QUANTILES = (0, 5, 25, 50, 75, 95, 100)
UNPRINTED = {"Reward", "States, actions", "Status", "Iterations", "Seconds"}  # facts that a paper does not give
COLUMNS = ("coef", "std err", "z", "P>|z|", "lower", "upper")


class FitLike(Protocol):
    """What a summary reads of a fit."""

    @property
    def method(self) -> str: ...
    @property
    def theta(self) -> Floats: ...
    @property
    def llf(self) -> float: ...
    @property
    def aic(self) -> float: ...
    @property
    def bic(self) -> float: ...
    @property
    def nobs(self) -> int: ...
    @property
    def status(self) -> Status: ...
    @property
    def settled(self) -> bool | None: ...
    @property
    def updates(self) -> int: ...
    @property
    def iterations(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    @property
    def options(self) -> dict[str, Any]: ...
    @property
    def errors(self) -> tuple[str, bool]: ...
    @property
    def bse(self) -> pd.Series: ...
    @property
    def tvalues(self) -> pd.Series: ...
    @property
    def pvalues(self) -> pd.Series: ...
    def conf_int(self, alpha: float = 0.05) -> pd.DataFrame: ...
    def bootstrap(self) -> Any: ...
    @property
    def identification(self) -> Any: ...
    @property
    def mdp(self) -> Any: ...
    @property
    def demonstrations(self) -> Any: ...
    @property
    def reward_model(self) -> Any: ...


@dataclass(frozen=True)
class Estimates:
    """θ with standard errors, z, p and interval; NaN where there are none, and `reason` says why there are none."""

    names: tuple[str, ...]
    coef: Floats
    bse: Floats
    z: Floats
    p: Floats
    lower: Floats
    upper: Floats
    reason: str = ""

    @property
    def columns(self) -> tuple[Floats, ...]:
        return self.coef, self.bse, self.z, self.p, self.lower, self.upper


def read_estimates(fit: FitLike, alpha: float = 0.05) -> Estimates:
    """The estimates with the errors that the fit uses. With joint errors the transitions' come last and stay out."""
    names, K = tuple(str(name) for name in fit.reward_model.names), fit.theta.size
    try:
        interval = fit.conf_int(alpha)
        parts = (fit.bse, fit.tvalues, fit.pvalues, interval["lower"], interval["upper"])
        bse, z, p, lower, upper = (np.asarray(part, dtype=np.float64)[:K] for part in parts)
        return Estimates(names, fit.theta, bse, z, p, lower, upper)
    except RevealedError as error:
        none = np.full(K, np.nan)
        return Estimates(names, fit.theta, none, none, none, none, none, _why_none(fit, error))


def _why_none(fit: FitLike, error: RevealedError) -> str:
    if fit.options.get("weighting") == "occupancy":
        return _OCCUPANCY
    message = str(error)
    return "No standard errors: " + (message.partition(": ")[2] if isinstance(error, InvalidInput) else message)


class Summary(Printed):
    """The printed form of a fit; `print(fit.summary())`, or by itself in a notebook."""

    def __init__(self, fit: FitLike, alpha: float = 0.05) -> None:
        if not 0.0 < as_number(alpha) < 1.0:
            raise InvalidOption("alpha", "a number between 0 and 1", repr(alpha))
        self._fit, self._alpha = fit, float(alpha)

    def to_frame(self) -> pd.DataFrame:
        """coef, std err, z, P>|z|, lower, upper per parameter; NaN where there are no standard errors."""
        import pandas as pd

        found = read_estimates(self._fit, self._alpha)
        return pd.DataFrame(dict(zip(COLUMNS, found.columns, strict=True)), index=list(found.names))

    def to_latex(self) -> str:
        """A `tabular` to be put into a `table`, without what a paper does not print; it needs
        `\\usepackage{booktabs}`."""
        sheet = self._sheet()
        left, right = ([pair for pair in side if pair[0] not in UNPRINTED] for side in (sheet.left, sheet.right))
        notes = sheet.notes[1:] if self._fit.status.code == "converged" else sheet.notes
        return replace(sheet, left=tuple(left), right=tuple(right), notes=notes).latex()

    def _sheet(self) -> Sheet:
        if self._fit.theta.size > MOST_ROWS:
            return self._quantiles()
        fit, found = self._fit, read_estimates(self._fit, self._alpha)
        shown = [] if found.reason else [("Covariance type", covariance_words(fit))]
        notes = [*status_notes(fit), *error_notes(fit, found)]
        return Sheet(
            caption=self._caption,
            head=("", "coef") if found.reason else ("", *COLUMNS[:4], *_interval_names(self._alpha)),
            blocks=(_coefficient_rows(found),),
            left=(*_left_facts(fit), *shown),
            right=_right_facts(fit),
            notes=tuple(notes),
        )

    def _quantiles(self) -> Sheet:
        """Too many to list: where they lie. Standard errors are not computed; `to_frame()` does."""
        fit = self._fit
        values = number_column(np.percentile(fit.theta, QUANTILES))
        return Sheet(
            caption=self._caption,
            title=f"{fit.theta.size} parameters, by quantile",
            head=("", *(f"{q}%" for q in QUANTILES)),
            blocks=((("coef", *values),),),
            left=_left_facts(fit),
            right=_right_facts(fit),
            notes=(*status_notes(fit), *_identification_notes(fit)),
        )

    @property
    def _caption(self) -> str:
        return f"{self._fit.method} estimates, {self._fit.nobs} observations"


# the table


def _coefficient_rows(found: Estimates) -> tuple[Row, ...]:
    coef = number_column(found.coef)
    if found.reason:
        return tuple(zip(found.names, coef, strict=True))
    z, p = [ratio(v) for v in found.z], [probability(v) for v in found.p]
    columns = (coef, number_column(found.bse), z, p, number_column(found.lower), number_column(found.upper))
    return tuple(zip(found.names, *columns, strict=True))


def _interval_names(alpha: float) -> Pair:
    return f"[{alpha / 2:.4g}", f"{1 - alpha / 2:.4g}]"


# facts


def _left_facts(fit: FitLike) -> tuple[Pair, ...]:
    l2 = fit.options.get("l2", 0.0)
    facts = [
        ("Method", fit.method),
        ("Reward", type(fit.reward_model).__name__),
        ("Weighting", _weighting_words(fit)),
        ("First step", _first_step_word(fit) if uses_first_step(fit) else ""),
        ("States, actions", f"{fit.mdp.n_states}, {fit.mdp.n_actions}"),
        ("Discount", f"{fit.mdp.discount:.10g}"),
        ("Penalty l2", f"{l2:g}" if l2 else ""),
        ("Status", fit.status.code),
    ]
    return tuple((name, text) for name, text in facts if text)


def _right_facts(fit: FitLike) -> tuple[Pair, ...]:
    return (
        ("Observations", f"{fit.nobs}"),
        ("Agents", f"{fit.demonstrations.n_agents}"),
        ("Pseudo log lik." if is_pseudo(fit) else "Log likelihood", f"{fit.llf:.3f}"),
        ("AIC", f"{fit.aic:.2f}"),
        ("BIC", f"{fit.bic:.2f}"),
        ("Iterations", f"{fit.iterations}" + (f" in {fit.updates} updates" if fit.settled is not None else "")),
        ("Seconds", f"{fit.seconds:.3f}"),
    )


def _weighting_words(fit: FitLike) -> str:
    weighting, visits = str(fit.options.get("weighting")), fit.demonstrations.visit_discount
    return weighting if weighting == "occupancy" or visits == 1.0 else f"{weighting}, times {visits:g}^t"


def uses_first_step(fit: FitLike) -> bool:
    return fit.method in ("CCP", "NPL") or fit.options.get("weighting") == "occupancy"


def is_pseudo(fit: FitLike) -> bool:
    """Whether `llf` is of choices that an estimated π̃ helps to predict: CCP, and NPL that has not settled."""
    return fit.method == "CCP" or fit.settled is False


def _first_step_word(fit: FitLike) -> str:
    step = fit.options.get("first_step")
    return step if isinstance(step, str) else "given" if _is_given(step) else type(step).__name__


def _is_given(first_step: Any) -> bool:
    return isinstance(first_step, np.ndarray | list | tuple)


def covariance_words(fit: FitLike) -> str:
    """Which standard errors the fit shows: "opg, joint with 2 transition parameters"."""
    kind, joint = fit.errors
    words = {"robust": "robust (sandwich)", "cluster": f"cluster by agent ({fit.demonstrations.n_agents})"}
    text = _bootstrap_words(fit) if kind == "bootstrap" else words.get(kind, kind)
    if not joint:
        return text
    n = len((fit.mdp.base or fit.mdp).estimated.names)
    return f"{text}, joint with {n} transition parameter{'' if n == 1 else 's'}"


def _bootstrap_words(fit: FitLike) -> str:
    drawn = fit.bootstrap()
    reps = drawn.n_used + drawn.n_failed
    return f"bootstrap ({reps} replications" + (f", {drawn.n_failed} failed)" if drawn.n_failed else ")")


# notes


def status_notes(fit: FitLike) -> list[str]:
    """How the fit ended, and each thing to know beside it."""
    return [f"{fit.status.code}: {fit.status.message}", *(f"Note: {note}" for note in fit.status.notes)]


def error_notes(fit: FitLike, found: Estimates) -> list[str]:
    """What to know before the numbers are believed."""
    notes = [found.reason] if found.reason else [_missing(fit, found), _bootstrap_note(fit), first_step_note(fit)]
    if fit.options.get("l2", 0.0) > 0.0 and not found.reason:
        notes.append(_SHRUNK.format(l2=fit.options["l2"]))
    return [*(note for note in notes if note), *_identification_notes(fit)]


def _missing(fit: FitLike, found: Estimates) -> str:
    if not np.isnan(found.bse).any():
        return ""
    code = fit.status.code
    if code not in _WITHOUT and _identified(fit):
        return "–: no standard error, " + _NO_MAXIMUM
    return "–: no standard error, " + _WITHOUT.get(code, _UNSEEN)


def _identified(fit: FitLike) -> bool:
    try:
        return fit.identification.rank == fit.theta.size
    except RevealedError:
        return False


def _bootstrap_note(fit: FitLike) -> str:
    """What was resampled, and which replications failed."""
    return f"Bootstrap: {fit.bootstrap()}." if fit.errors[0] == "bootstrap" else ""


def first_step_note(fit: FitLike) -> str:
    """CCP and NPL that did not settle: valid in large samples, silent about bias. Empty for the others."""
    if not is_pseudo(fit):
        return ""
    if _is_given(fit.options.get("first_step")):
        return _GIVEN
    return _RESAMPLED if fit.errors[0] == "bootstrap" else _FIRST_STEP


def _identification_notes(fit: FitLike) -> list[str]:
    """What the data hardly tell apart. Where the status names it, once is enough; of a table of weights or a network
    choices always leave much open, and of very many weights nobody reads it."""
    reward = fit.reward_model
    if fit.status.code in ("unidentified", "separated") or getattr(reward, "tabular", False):
        return []
    if fit.theta.size > (MOST_NAMED if getattr(reward, "linear", False) else MOST_ROWS):
        return []
    try:
        words = fit.identification.words
    except RevealedError:
        return []
    return [f"Weak identification: {words}."] if words else []


_OCCUPANCY = (
    "No standard errors: with occupancy weighting the objective is not a likelihood, and only resampling gives them: "
    'fit.with_errors("bootstrap").'
)
_FIRST_STEP = (
    "These standard errors are asymptotically valid (the first step enters with zero derivative) but ignore "
    'finite-sample bias, which can be large. fit.with_errors("bootstrap") re-estimates the first step in every '
    "replication; it measures spread, not bias."
)
_RESAMPLED = (
    "The bootstrap measures spread, not the bias that a noisy first step brings in finite samples, which can be large."
)
_GIVEN = "π̃ was given and is taken as true: the standard errors hold for choice probabilities that are known."
_SHRUNK = "Standard errors do not cover the shrinkage by the penalty (l2 = {l2:g}): the estimates are biased to zero."
_UNSEEN = "since choices do not identify the parameter by itself."
_NO_MAXIMUM = "since the curvature at the estimate is not that of a maximum."
_WITHOUT = {
    "separated": "since the likelihood is separated: the weight has no finite estimate.",
    "inner_solve_failed": "since the search failed.",
    "unidentified": _UNSEEN,
}
