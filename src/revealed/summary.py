"""The printed form of a fit: estimates with their errors, how they were found, and what to keep in mind about them.

A summary never raises because an error has no formula: it shows what there is and says why the rest is missing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.agent_groups import FEW
from revealed.checks import require_share
from revealed.errors import RevealedError
from revealed.estimates import Estimates, FitLike, read_estimates, read_transitions
from revealed.first_step import Frequency, GoalLogit, Kernel, Logit, Smoothed, describe_step, step_named
from revealed.labels import how_many
from revealed.sheet import Pair, Printed, Row, Sheet, number_column, probability, ratio
from revealed.voices import either, words

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 30  # of θ, and of the transitions' parameters; a longer θ is shown by its quantiles
MOST_NAMED = 100  # parameters of a linear reward among which weak directions are looked for
QUANTILES = (0, 5, 25, 50, 75, 95, 100)
UNPRINTED = {"Reward", "States, actions", "Status", "Iterations", "Seconds"}  # facts that a paper does not give
COLUMNS = ("coef", "std err", "z", "P>|z|", "lower", "upper")


class Summary(Printed):
    """The printed form of a fit; `print(fit.summary())`, or by itself in a notebook."""

    def __init__(self, fit: FitLike, alpha: float = 0.05) -> None:
        self._fit, self._alpha = fit, require_share("alpha", alpha)

    def to_frame(self) -> pd.DataFrame:
        """coef, std err, z, P>|z|, lower, upper per parameter; NaN where there are no standard errors.

        With joint errors the parameters of the transitions follow those of the reward.
        """
        import pandas as pd

        parts = [part for part in self._read() if part is not None]
        names = [name for part in parts for name in part.names]
        columns = (np.concatenate(some) for some in zip(*(part.columns for part in parts), strict=True))
        return pd.DataFrame(dict(zip(COLUMNS, columns, strict=True)), index=names)

    def _read(self) -> tuple[Estimates, Estimates | None]:
        """θ, and ψ where there is something to say of it."""
        found = read_estimates(self._fit, self._alpha)
        return found, None if found.reason else read_transitions(self._fit, self._alpha)

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
        fit, (found, moves) = self._fit, self._read()
        shown = [] if found.reason else [("Covariance type", covariance_words(fit))]
        blocks = [_coefficient_rows(part) for part in (found, moves) if part is not None and _is_listed(part)]
        return Sheet(
            caption=self._caption,
            head=("", "coef") if found.reason else ("", *COLUMNS[:4], *_interval_names(self._alpha)),
            blocks=tuple(blocks),
            left=(*_left_facts(fit), *shown, *_goodness_fact(fit)),
            right=_right_facts(fit),
            notes=(*status_notes(fit), *poor_notes(fit), *_transition_notes(fit, moves), *error_notes(fit, found)),
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
        return f"{self._fit.method} estimates, {self._fit.nobs} {'trips' if has_trips(self._fit) else 'observations'}"


# the table


def _coefficient_rows(found: Estimates) -> tuple[Row, ...]:
    coef = number_column(found.coef)
    if found.reason:
        return tuple(zip(found.names, coef, strict=True))
    z, p = [ratio(v) for v in found.z], [probability(v) for v in found.p]
    columns = (coef, number_column(found.bse), z, p, number_column(found.lower), number_column(found.upper))
    return tuple(zip(found.names, *columns, strict=True))


def _is_listed(part: Estimates) -> bool:
    return part.coef.size <= MOST_ROWS


def _interval_names(alpha: float) -> Pair:
    return f"[{alpha / 2:.4g}", f"{1 - alpha / 2:.4g}]"


# facts


def _left_facts(fit: FitLike) -> tuple[Pair, ...]:
    l2 = fit.options.get("l2", 0.0)
    facts = [
        ("Method", fit.method),
        ("Reward", type(fit.reward_model).__name__),
        ("Weighting", _weighting_words(fit)),
        ("First step", first_step_word(fit)),
        ("States, actions", f"{fit.mdp.n_states}, {fit.mdp.n_actions}"),
        ("Discount", f"{fit.mdp.discount:.10g}"),
        ("Penalty l2", f"{l2:.3g}" if l2 else ""),
        ("Status", fit.status.code),
        (
            "Iterations",
            f"{fit.iterations}" + (f" in {how_many(fit.updates, 'update')}" if fit.settled is not None else ""),
        ),
        ("Seconds", f"{fit.seconds:.3f}"),
    ]
    return tuple((name, text) for name, text in facts if text)


def _right_facts(fit: FitLike) -> tuple[Pair, ...]:
    return (
        *((name, text) for name, text in counted(fit).items() if text),
        ("Pseudo log lik." if is_pseudo(fit) else "Log likelihood", f"{fit.llf:.3f}"),
        *_measures(fit),
        ("AIC", f"{fit.aic:.2f}"),
        ("BIC", f"{fit.bic:.2f}"),
    )


def _measures(fit: FitLike) -> tuple[Pair, ...]:
    """How well choices are predicted; what is not a number stays away."""
    found = {
        "LL, null": (f"{fit.llnull:.3f}", fit.llnull),
        "LL, saturated": (f"{fit.llsat:.3f}", fit.llsat),
        "Pseudo R²": (f"{fit.prsquared:.4f}", fit.prsquared),
        "Pseudo R², adj.": (f"{fit.prsquared_adj:.4f}", fit.prsquared_adj),
        "Hit rate": (f"{fit.hit_rate:.4f}", fit.hit_rate),
    }
    return tuple((name, text) for name, (text, value) in found.items() if np.isfinite(value))


def counted(fit: FitLike) -> dict[str, str]:
    """How many observations there are, of what and of whom; empty texts where something is not counted."""
    if not has_trips(fit):
        return {"Observations": f"{fit.nobs}", "Agents": agents_word(fit)}
    demos = fit.demonstrations
    whose = f"{demos.n_agents}" if are_travellers(fit) else ""
    return {
        "Trips": f"{fit.nobs}",
        "Decisions": f"{round(demos.n_decisions)}",
        "Travellers": whose,
        "Goals": f"{len(demos.goals)}",
    }


def has_trips(fit: FitLike) -> bool:
    """Whether observations are trips that go somewhere."""
    return getattr(fit.demonstrations, "goals", None) is not None


def are_travellers(fit: FitLike) -> bool:
    """Whether agents made several trips, so that they are not the trips themselves."""
    return fit.demonstrations.n_agents < fit.demonstrations.origins.size


def _weighting_words(fit: FitLike) -> str:
    weighting, visits = str(fit.options.get("weighting")), fit.demonstrations.visit_discount
    return weighting if weighting == "occupancy" or visits == 1.0 else f"{weighting}, times {visits:g}^t"


def agents_word(fit: FitLike) -> str:
    """How many, but for plain counts, which do not tell whose decisions they are."""
    demos = fit.demonstrations
    return "not known" if demos.n_agents == 1 and demos.steps is None else f"{demos.n_agents}"


def is_pseudo(fit: FitLike) -> bool:
    """Whether `llf` is of choices that an estimated π̃ helps to predict: CCP, and NPL that has not settled."""
    return fit.method == "CCP" or fit.settled is False


def first_step_word(fit: FitLike) -> str:
    """The first step with what shapes it beside the data, `logit (l2=0.01, standardised)`; empty where the method has
    none."""
    name, details = first_step_parts(fit)
    return f"{name} ({details})" if details else name


def first_step_parts(fit: FitLike) -> tuple[str, str]:
    """The first step's name, and its penalty, pseudo-count or bandwidth."""
    if fit.method not in ("CCP", "NPL") and fit.options.get("weighting") != "occupancy":
        return "", ""
    step, goals = step_named(fit.options.get("first_step")), getattr(fit.demonstrations, "goals", None)
    if goals is not None and isinstance(step, Kernel):
        return "kernel", "goal by goal"
    if goals is not None and fit.options.get("first_step") == "logit":
        step = GoalLogit()
    return describe_step(step, fit.mdp, fit.demonstrations.counts, fit.reward_model)


def _is_given(first_step: Any) -> bool:
    return not isinstance(first_step, str) and not hasattr(first_step, "estimate")


def covariance_words(fit: FitLike) -> str:
    """Which standard errors the fit shows, and whether they count noise in transitions that were estimated."""
    kind, joint = fit.errors
    by, n = clusters_of(fit)
    robust = "robust (sandwich over trips)" if has_trips(fit) else "robust (sandwich)"
    words = {"robust": robust, "cluster": f"cluster by {by} ({n})"}
    text = _bootstrap_words(fit) if kind == "bootstrap" else words.get(kind, kind)
    moves = fit.mdp.estimated
    n = 0 if moves is None else len(moves.names)
    counted = fit.drawn.psi.shape[1] > 0 if kind == "bootstrap" else joint  # it leaves those of other agents alone
    if n and not counted:
        return text + "; transitions taken as known"
    return f"{text}, joint with {n} transition parameter{'' if n == 1 else 's'}" if n and joint else text


def clusters_of(fit: FitLike) -> tuple[str, int]:
    """What clustered errors and bootstraps count as one, and how many of it there are."""
    if fit.groups is not None:
        return fit.groups.by, fit.groups.n
    who = "agent" if not has_trips(fit) else "traveller" if are_travellers(fit) else "trip"
    return who, fit.demonstrations.n_agents


def _few_clusters_note(fit: FitLike) -> str:
    by, n = clusters_of(fit)
    return _FEW_CLUSTERS.format(by=by, n=n, df=n - 1) if fit.errors[0] in ("cluster", "bootstrap") and n < FEW else ""


def _bootstrap_words(fit: FitLike) -> str:
    drawn = fit.drawn
    reps = drawn.n_used + drawn.n_failed
    return f"bootstrap ({reps} replications" + (f", {drawn.n_failed} failed)" if drawn.n_failed else ")")


# notes


def status_notes(fit: FitLike) -> list[str]:
    """How the fit ended, and each thing to know beside it."""
    return [f"{fit.status.code}: " + fit.status.message, *("Note: " + note for note in fit.status.notes)]


def poor_notes(fit: FitLike) -> list[str]:
    """That observed choices speak against the model, where they do."""
    words = poor_fit_words(fit)
    return [f"Note: {words}"] if words else []


def poor_fit_words(fit: FitLike) -> str:
    """The same as a sentence. It takes the information of the parameters, which of very many takes long."""
    found = fit.goodness if fit.theta.size <= MOST_ROWS else ""
    return _POOR.format(found=found) if getattr(found, "poor", False) else ""


def _goodness_fact(fit: FitLike) -> tuple[Pair, ...]:
    """X² where there is a test; the report says why there is none."""
    found = fit.goodness
    return () if isinstance(found, str) else (("Goodness of fit", found.brief),)


def error_notes(fit: FitLike, found: Estimates) -> list[str]:
    """What to know before the numbers are believed."""
    if found.reason:
        return [found.reason, *_identification_notes(fit)]
    notes = [_missing(fit, found), _few_clusters_note(fit), _bootstrap_note(fit), first_step_note(fit)]
    if fit.options.get("l2", 0.0) > 0.0:
        notes.append(_SHRUNK.format(l2=fit.options["l2"]))
    return [*(note for note in notes if note), *_identification_notes(fit)]


def _missing(fit: FitLike, found: Estimates) -> str:
    if not np.isnan(found.bse).any():
        return ""
    why = _WITHOUT.get(fit.status.code)
    if why is None:
        why = _UNENDED if not fit.at_maximum else _NO_MAXIMUM if _identified(fit) else _UNSEEN
    return "–: no standard error, " + why


def _transition_notes(fit: FitLike, moves: Estimates | None) -> list[str]:
    """What the table does not tell of the transitions' parameters."""
    if moves is None:
        return []
    if not _is_listed(moves):
        return [f"And {moves.coef.size} transition parameters, which summary().to_frame() lists."]
    return [_UNTOLD] if fit.at_maximum and np.isnan(moves.bse).any() else []


def _identified(fit: FitLike) -> bool:
    try:
        return fit.identification.rank == fit.theta.size
    except RevealedError:
        return False


def _bootstrap_note(fit: FitLike) -> str:
    """What was resampled, and which replications failed; and why, where other errors were asked for."""
    why = getattr(fit, "errors_note", "")
    return f"Bootstrap: {fit.drawn}. {why[:1].upper()}{why[1:]}".strip() if fit.errors[0] == "bootstrap" else ""


def first_step_trust(fit: FitLike) -> str:
    """What the estimates depend on if a first step is used; empty if none is.

    "given": that what was given is true. "form": that its form is right. "size": on many data alone.
    """
    if not is_pseudo(fit) and fit.options.get("weighting") != "occupancy":
        return ""
    step = fit.options.get("first_step")
    if _is_given(step):
        return "given"
    return "form" if _wrong_form(step) else "size" if is_pseudo(fit) else ""


def _wrong_form(step: Any) -> str:
    """What may go wrong with a first step that cannot take any form; empty where it finds the truth, given data."""
    step = step_named(step)
    if isinstance(step, Logit | GoalLogit):
        return "a penalised or misspecified logit" if step.l2 > 0.0 else "a misspecified logit"
    if isinstance(step, Kernel):  # of features, by default, it narrows as the data grow
        return "" if step.bandwidth is None and step.distance is None else "a kernel of fixed width that is too wide"
    return "" if isinstance(step, Frequency | Smoothed) else "a misspecified one"


def first_step_note(fit: FitLike) -> str:
    """CCP and NPL that did not settle: under which condition the errors hold, and what they do not show."""
    trust, step = first_step_trust(fit), fit.options.get("first_step")
    if trust == "form":
        return _FORM.format(what=_wrong_form(step))
    if trust != "size":
        return _GIVEN if trust else ""
    note = _RESAMPLED if fit.errors[0] == "bootstrap" else _FIRST_STEP
    return note + " " + _APART if step == "kernel" or isinstance(step, Kernel) else note


def _identification_notes(fit: FitLike) -> list[str]:
    """What the data hardly tell apart. Where the status names it, once is enough; of a table of weights choices always
    leave much open, the weights of a network mean nothing one by one, and of very many nobody reads it."""
    linear = getattr(fit.reward_model, "linear", False)
    if fit.status.code in ("unidentified", "separated") or getattr(fit.reward_model, "tabular", False):
        return []
    if fit.theta.size > (MOST_NAMED if linear else MOST_ROWS):
        return []
    try:
        found = fit.identification
    except RevealedError:
        return []
    if not found.words:
        return []
    return [f"Weak identification: {found.words}." if linear else _in_one_sentence(found)]


def _in_one_sentence(found: Any) -> str:
    if found.rank < found.n_params:
        return f"Choices identify {found.rank} of {found.n_params} parameters."
    return f"Choices hardly distinguish some of the parameters (condition index {found.condition:.3g})."


_POOR = (
    "the model fits poorly: observed choices differ from the predicted ones by more than chance "
    "({found}). Is a feature missing, or is the model of the transitions wrong?"
)
_FEW_CLUSTERS = (
    "Standard errors from few clusters ({n}, by {by}) tend to be too small: read z against a t distribution with {df} "
    "degrees of freedom at most."
)
_FIRST_STEP = words(
    "These standard errors are asymptotically valid (the first step enters with zero derivative) but ignore "
    "finite-sample bias, which can be large. "
    + either('fit.with_errors("bootstrap")', "--errors bootstrap")
    + " re-estimates the first step in every replication; it measures spread, not bias."
)
_RESAMPLED = (
    "The bootstrap measures spread, not the bias that a noisy first step causes in finite samples, which can be large."
)
_APART = "A kernel finds the true choice probabilities only if its features distinguish states."
_FORM = (
    "These standard errors are valid only if the first step is correctly specified: {what} leaves a bias that more "
    "data do not remove."
)
_GIVEN = "π̃ was given: the standard errors take these choice probabilities as known."
_SHRUNK = "Standard errors ignore the shrinkage by the penalty (l2 = {l2:.3g}): the estimates are biased towards zero."
_UNSEEN = "since choices do not identify the parameter on its own."
_UNENDED = "since the search did not finish."
_UNTOLD = "–: no standard error of a transition parameter, since the observed moves do not identify it."
_NO_MAXIMUM = "since the curvature at the estimate is not that of a maximum."
_WITHOUT = {
    "separated": "since the likelihood is separated: the weight has no finite estimate.",
    "inner_solve_failed": "since the search failed.",
    "unidentified": _UNSEEN,
}
