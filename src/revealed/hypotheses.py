"""Tests of hypotheses: likelihood ratio of nested models, Vuong's of others, Wald, and the difference of two estimators
by their joint bootstrap (N7).

Anything with the attributes of a fit is accepted as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import (
    as_number,
    is_mapping,
    remedy_for,
    require_count,
    require_flag,
    require_floats,
    require_option,
)
from revealed.eigen import symmetric_eigen
from revealed.errors import InvalidInput
from revealed.inference import MOST_PARAMETERS, require_estimated
from revealed.labels import how_many, listed, locate, spell
from revealed.matching import decisions_on
from revealed.mdp import Floats
from revealed.naming import rows_of
from revealed.nesting import find_nesting
from revealed.positions import by_column, by_parameter, in_order, parameter_named, require_by_name
from revealed.sheet import Printed, Sheet, number_column, probability, ratio
from revealed.voices import arg, shown

if TYPE_CHECKING:
    import pandas as pd

FULL_LIKELIHOOD = ("NFXP", "MCE-IRL")


@dataclass(frozen=True)
class TestResult:
    """A statistic, its degrees of freedom and the probability of one as large under the hypothesis."""

    __test__ = False  # pytest would take it for a class of tests

    name: str
    statistic: float
    df: int
    pvalue: float
    detail: str = ""

    def __str__(self) -> str:
        p = f"{self.pvalue:.4f}" if self.pvalue >= 1e-4 else f"{self.pvalue:.2e}"
        text = f"{self.name}: chi2({self.df}) = {self.statistic:.4f}, p = {p}"
        return text + (f" ({self.detail})" if self.detail else "")


def likelihood_ratio_test(restricted: Any, full: Any, df: int | None = None, joint: bool = False) -> TestResult:
    """Likelihood-ratio test of a restriction: 2(llf of the full model − llf of the restricted one).

    `full` may be several fits to parts of the data, as in a test that groups have the same parameters. `df` is by
    default the difference in the number of identified parameters; pass it if a restriction concerns something that is
    not counted, such as the discount. `joint` adds the likelihood and the parameters of the transitions if they were
    estimated.

    The restricted model must be a special case of the full one. Features of linear rewards are compared, up to what
    choices cannot see, and a model that is not nested is refused: `vuong_test` compares such models. Where nesting
    cannot be verified (other discounts or transitions, networks), the result says so.
    """
    require_flag("joint", joint)
    fulls = list(full) if isinstance(full, list | tuple) else [full]
    if not fulls:
        raise InvalidInput("full", "a fit, or a list of fits", "an empty list")
    for name, fit in [("restricted", restricted), *(("full", one) for one in fulls)]:
        _require_likelihood(name, fit, joint)
    _require_same_data(restricted, fulls)
    more = sum(_size(fit, joint) for fit in fulls) - _size(restricted, joint)
    if df is None and more < 0:
        raise _not_larger(more, "Are they swapped? The restricted one comes first.")
    found = [find_nesting(restricted, one, joint) for one in fulls]
    _require_nested(restricted, fulls, [one.lacking for one in found])
    if df is None and more == 0:
        raise _not_larger(more, "If the restriction is not on parameters (a discount, say), pass df=.")
    df = more if df is None else df
    require_count("df", df)
    statistic = 2.0 * (sum(_llf(fit, joint) for fit in fulls) - _llf(restricted, joint))
    if statistic < -1e-6 * (1.0 + abs(restricted.llf)):
        what = f"the log likelihood of the full model is {-statistic / 2.0:.4g} below that of the restricted one"
        raise InvalidInput.impossible(what, remedy="Are they swapped, or not nested?", argument="full")
    doubts = dict.fromkeys(one.unverified for one in found if one.unverified)
    detail = f"nesting not verified: {'; '.join(doubts)}" if doubts else ""
    return _chi_square("likelihood ratio", max(statistic, 0.0), int(df), detail)


def _not_larger(more: int, remedy: str) -> InvalidInput:
    many = f"{-more} fewer" if more else "the same number"
    return InvalidInput.conflict(
        "full", f"must have more parameters than the restricted model, not {many}", remedy=remedy
    )


def _require_nested(restricted: Any, fulls: Sequence[Any], lacking: Sequence[tuple[str, ...]]) -> None:
    for k, names in enumerate(lacking):
        if names:
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            spanned = f"{', '.join(f'`{name}`' for name in names[:3])}{more}"
            where = f"fit {k}" if len(fulls) > 1 else None
            remedy = "Compare models that are not nested with rv.vuong_test(first, second)."
            rule = f"must contain the restricted model, but its features do not span {spanned}: not nested"
            raise InvalidInput.conflict("full", rule, where, remedy)


@dataclass(frozen=True)
class VuongTest:
    """Vuong's test of two models that are not nested: `statistic` is z, positive where the first predicts better.

    `difference` is the first's log likelihood less the second's, less the `correction` for their parameters;
    `n_units` of `unit` are what is taken as independent.
    """

    __test__ = False

    names: tuple[str, str]
    statistic: float
    pvalue: float
    difference: float
    n_units: int
    unit: str
    correction: str | None = None
    detail: str = ""

    @property
    def preferred(self) -> str | None:
        """The model that predicts better, where the difference is more than chance at 5 %."""
        return None if self.pvalue >= 0.05 else self.names[0] if self.statistic > 0.0 else self.names[1]

    def __str__(self) -> str:
        p = f"{self.pvalue:.4f}" if self.pvalue >= 1e-4 else f"{self.pvalue:.2e}"
        less = "" if self.correction is None else f", corrected by {self.correction.upper()}"
        better = "neither predicts better" if self.preferred is None else f"{self.preferred} predicts better"
        text = f"Vuong: z = {self.statistic:.4f}, p = {p}: {better}; log likelihood of {self.names[0]} minus "
        text += f"{self.names[1]}: {self.difference:+.3f} ({how_many(self.n_units, self.unit)}{less})"
        return text + (f"; {self.detail}" if self.detail else "")


def vuong_test(first: Any, second: Any, correction: str | None = None) -> VuongTest:
    """Vuong's test: which of two non-nested models predicts these decisions better, if either does.

    z = Σ_i m_i / (√n s), with m_i the difference of the two log likelihoods of agent i (of the group where the first
    fit's errors are clustered by one; of single decisions where agents are not known) and s its standard deviation
    (Vuong, 1989). `correction` penalises the additional parameters: "aic" by one nat each, "bic" by half the log of n
    each. Nested models are refused: use `likelihood_ratio_test`.
    """
    from scipy.special import ndtr

    if correction is not None:
        require_option("correction", correction, ("aic", "bic"))
    for name, fit in (("first", first), ("second", second)):
        _require_likelihood(name, fit, joint=False)
    _require_same_agents(first, second)
    detail = _require_not_nested(first, second)
    (one, often, unit), (two, _, _) = _by_unit(first, first), _by_unit(second, first)
    gap, n = one - two, float(often.sum())
    spread = float(np.sqrt(max(often @ gap**2 / n - (often @ gap / n) ** 2, 0.0)))
    if not spread > 1e-9 * (1.0 + abs(first.llf) / n):
        raise InvalidInput.impossible("models with the same predictions cannot be compared", argument="second")
    extra = _size(first, False) - _size(second, False)
    cost = {None: 0.0, "aic": 1.0, "bic": float(np.log(n)) / 2.0}[correction]
    difference = float(often @ gap) - cost * extra
    z = difference / (np.sqrt(n) * spread)
    p = float(2.0 * ndtr(-abs(z)))
    return VuongTest(_two_names(first, second), z, p, difference, round(n), unit, correction, detail)


def _two_names(first: Any, second: Any) -> tuple[str, str]:
    names = first.method, second.method
    return names if names[0] != names[1] else ("the first", "the second")


def _require_not_nested(first: Any, second: Any) -> str:
    """What to say where nobody knows; nested models differ by a χ², not by a normal deviate."""
    found = [find_nesting(one, other) for one, other in ((first, second), (second, first))]
    if all(one.holds for one in found):
        raise InvalidInput.impossible("both fits are of the same model", argument="second")
    for nested, words in zip(found, ("first, second", "second, first"), strict=True):
        if nested.holds:
            remedy = f"Use rv.likelihood_ratio_test({words})."
            raise InvalidInput.impossible("nested models cannot be compared by Vuong's test", None, remedy, "second")
    doubts = dict.fromkeys(one.unverified for one in found if one.unverified)
    return f"nesting not verified: {'; '.join(doubts)}" if doubts else ""


def _require_same_agents(first: Any, second: Any) -> None:
    one, other = first.demonstrations, _decisions_of(second, first)
    same = _names(one) == _names(other) and one.n_decisions == other.n_decisions
    if same and one.by_agent.shape == other.by_agent.shape:
        same = _same_counts(one.by_agent, other.by_agent) and _same_goals(one, other)
    if not same:
        raise _other_data(one, other)


def _names(demos: Any) -> list[str]:
    return list(map(spell, demos.ids))


def _other_data(one: Any, other: Any) -> InvalidInput:
    """The complaint about fits whose agents differ, or are not in the same order."""
    expected = "a fit to the same agents and decisions"
    if _names(one) != _names(other) and set(_names(one)) == set(_names(other)):
        remedy = "Fit the second to demos.subset(list(first.demonstrations.ids))."
        return InvalidInput("second", expected, "one to the same agents in another order", remedy=remedy)
    return InvalidInput("second", expected, "a fit to other data")


def _decisions_of(fit: Any, first: Any) -> Any:
    """What a fit saw, in the order of the first one's model."""
    return fit.demonstrations if fit is first else decisions_on(fit.demonstrations, first.mdp)


def _by_unit(fit: Any, first: Any) -> tuple[Floats, Floats, str]:
    """Log likelihoods of what counts as independent, how often each counts, and what it is: as the first fit says."""
    demos, groups = fit.demonstrations, first.groups
    if demos.goals is not None:
        by_trip = fit.log_likelihood_by_trip().to_numpy()
        agents = np.bincount(demos.steps.agent[demos.steps.first], by_trip, demos.n_agents).astype(np.float64)
        unit = "trip" if demos.n_agents == by_trip.size else "traveller"
    else:
        seen = np.flatnonzero(demos.counts)
        log = fit.log_policy.reshape(-1)[seen]
        if demos.n_agents == 1:
            counts = first.demonstrations.counts
            logs = fit.log_policy if fit is first else in_order(first.mdp, fit.log_policy, "second")
            return logs[counts > 0.0], counts[counts > 0.0], "decision"
        agents, unit = np.asarray(demos.by_agent[:, seen] @ log), "agent"
    if groups is not None:
        agents, unit = groups.sums(agents[:, None])[:, 0], "cluster"
    return agents, np.ones(agents.size), unit


def wald_test(fit: Any, hypothesis: Any) -> TestResult:
    """Wald test of linear restrictions, with the covariance of the fit's own errors.

    `hypothesis` is a dict or Series from names to numbers, or to another name that it should equal
    (`{"a": 0, "b": "c"}`), or (R, q) for Rθ = q, with columns by name where R is a DataFrame or Series.
    """
    if isinstance(hypothesis, tuple) and hypothesis:
        require_by_name("hypothesis", hypothesis[0], fit.reward_model.names)
    R, q = _restrictions(list(fit.reward_model.names), hypothesis)
    gap = R @ fit.theta - q
    V = R @ fit.covariance() @ R.T
    statistic, rank = quadratic_form(gap, V)
    if rank < len(V):
        remedy = "A parameter has no standard error (see the summary), or a restriction is repeated."
        what = "the covariance of the restrictions is singular"
        raise InvalidInput.impossible(what, remedy=remedy, argument="hypothesis")
    return _chi_square("Wald", statistic, rank, f"{fit.errors[0]} covariance")


@dataclass(frozen=True, eq=False, repr=False)
class DifferenceTest(Printed):
    """Two estimators on the same data: their differences, with errors from the same resamples, and one joint test."""

    methods: tuple[str, str]
    names: tuple[str, ...]
    difference: Floats = field(repr=False)
    cov: Floats = field(repr=False)
    joint: TestResult
    replications: int
    failures: int

    @property
    def frame(self) -> pd.DataFrame:
        """difference, std err, z and P>|z| per parameter."""
        import pandas as pd
        from scipy.special import ndtr

        se = np.sqrt(np.diag(self.cov))
        z = self.difference / se
        columns = {"difference": self.difference, "std err": se, "z": z, "P>|z|": 2.0 * ndtr(-np.abs(z))}
        return pd.DataFrame(columns, index=list(self.names))

    def _sheet(self) -> Sheet:
        frame = self.frame
        columns = [number_column(frame["difference"]), number_column(frame["std err"])]
        columns += [[ratio(v) for v in frame["z"]], [probability(v) for v in frame["P>|z|"]]]
        title = f"{self.methods[0]} − {self.methods[1]}, {self.replications} joint replications"
        title += f", {self.failures} left out because one of the two failed" if self.failures else ""
        rows = tuple(zip(self.names, *columns, strict=True))
        return Sheet(title, ("", *frame.columns), (rows,), notes=(str(self.joint),), title=title)


def difference_test(
    first: Any,
    second: Any,
    reps: int = 400,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool | None = None,
) -> DifferenceTest:
    """Test whether two estimators, such as CCP and NFXP, disagree by more than chance on these data.

    Both are estimated again on the same resampled agents, so that what they share cancels. (Hausman's formula needs
    the difference of two covariances, which is zero here to first order.) A settled NPL equals NFXP, so that there is
    nothing to test.
    """
    _require_two_estimators(first, second)
    options: dict[str, Any] = {"reps": reps, "seed": seed, "jobs": jobs, "progress": progress}
    one, two = first.bootstrap(**options), second.bootstrap(**options)
    both, i, j = np.intersect1d(one.index, two.index, return_indices=True)
    if both.size < first.theta.size + 2:
        got = f"{both.size} of {reps}"
        raise InvalidInput(
            "reps", f"more than {first.theta.size + 1} replications in which both estimators converge", got
        )
    own = locate(first.reward_model.names, second.reward_model.names)
    gap = first.theta - second.theta[own]
    V = np.atleast_2d(np.cov(one.theta[i] - two.theta[j][:, own], rowvar=False))
    statistic, rank = quadratic_form(gap, V)
    if rank == 0:
        raise InvalidInput.impossible("both estimators give the same estimates in every resample", argument="second")
    joint = _chi_square("all differences are zero", statistic, rank)
    names = tuple(first.reward_model.names)
    asked = min(one.n_used + one.n_failed, two.n_used + two.n_failed)
    return DifferenceTest((first.method, second.method), names, gap, V, joint, int(both.size), asked - int(both.size))


def quadratic_form(gap: Floats, V: Floats) -> tuple[float, int]:
    """gapᵀ V⁻¹ gap in units of standard errors, so that units of features do not matter, and the rank of V."""
    d = np.sqrt(np.maximum(np.diag(V), 0.0))
    if not np.isfinite(V).all() or not (d > 0.0).any():
        return np.nan, 0
    live = d > 0.0
    found = symmetric_eigen(V[np.ix_(live, live)] / np.outer(d[live], d[live]))
    if found is None:
        return np.nan, 0
    values, vectors = found
    seen = values > 1e-10 * live.sum()
    along = (vectors.T @ (gap[live] / d[live]))[seen]
    return float(along @ (along / values[seen])), int(seen.sum())


def _require_fit(name: str, fit: Any) -> None:
    """A fit, or anything that tells as much of itself."""
    parts = ("theta", "method", "status", "options", "reward_model", "demonstrations", "llf")
    if isinstance(fit, type) or not all(hasattr(fit, part) for part in parts):
        got = f"the class {fit.__name__}" if isinstance(fit, type) else type(fit).__name__
        raise InvalidInput(name, "a fit", got)


def _require_two_estimators(first: Any, second: Any) -> None:
    _require_fit("first", first)
    _require_fit("second", second)
    own, others = (list(map(str, fit.reward_model.names)) for fit in (first, second))
    if sorted(own) != sorted(others):
        expected = f"a fit with the same {len(own)} parameters as `first` ({listed(own)})"
        raise InvalidInput("second", expected, f"{len(others)} different ones ({listed(others)})")
    one, other = first.demonstrations, _decisions_of(second, first)
    if not _same_counts(one.by_agent, other.by_agent):
        raise _other_data(one, other)
    if first.group_key != second.group_key:
        raise InvalidInput.conflict(
            "second", "must have the same clusters as the first", remedy=f"Pass the same {arg('by')} to both."
        )
    full = [fit.method in FULL_LIKELIHOOD for fit in (first, second)]
    if all(one or fit.settled for one, fit in zip(full, (first, second), strict=True)):
        names = [fit.method if one else f"settled {fit.method}" for one, fit in zip(full, (first, second), strict=True)]
        both = f"two {names[0]} fits" if names[0] == names[1] else " and ".join(names)
        remedy = "Compare CCP, or NPL with few updates, with NFXP."
        raise InvalidInput.impossible(f"{both} are the same estimator", remedy=remedy, argument="second")


def _same_counts(one: Any, other: Any) -> bool:
    return one.shape == other.shape and abs(one - other).sum() == 0


def _same_goals(one: Any, other: Any) -> bool:
    """Trips of the same agents to the same places, or none with goals."""
    tables = [_by_goal(demos) for demos in (one, other)]
    return tables[0] == tables[1]


def _by_goal(demos: Any) -> dict[tuple[int, int, int], float]:
    """How often each decision was taken on the way to each goal; empty where trips have none."""
    if demos.goals is None:
        return {}
    steps = demos.steps
    keys, place = np.unique(np.stack([steps.goal, steps.state, steps.action]), axis=1, return_inverse=True)
    often = np.bincount(place.reshape(-1), demos.step_weights)
    return {(int(g), int(s), int(a)): float(n) for (g, s, a), n in zip(keys.T, often, strict=True) if n > 0.0}


def _require_likelihood(name: str, fit: Any, joint: bool) -> None:
    """Likelihood ratios need maxima of the likelihood: no penalty, no pseudo-likelihood, no other weights."""
    _require_fit(name, fit)
    if not (fit.method in FULL_LIKELIHOOD or fit.settled):
        got = f"{fit.method}, which maximises a pseudo-likelihood"
        raise InvalidInput(name, "NFXP, MCE-IRL or a settled NPL", got, remedy="Use fit.wald_test, or NFXP.")
    if fit.options["weighting"] != "sample" or fit.options["l2"] > 0.0 or fit.demonstrations.visit_discount != 1.0:
        raise InvalidInput.conflict(
            name,
            "must maximise the likelihood itself, without occupancy weights, discounted visits or a penalty",
            remedy=f"Fit with {arg('weighting', 'sample')}, {arg('l2', 0)}.",
        )
    if fit.status.code not in ("converged", "unidentified"):
        raise InvalidInput(name, "a fit that has converged", fit.status.code, remedy=fit.status.message)
    if joint:
        require_estimated(fit.mdp.estimated)


def _require_same_data(restricted: Any, fulls: Sequence[Any]) -> None:
    whole, parts = restricted.demonstrations, [_decisions_of(fit, restricted) for fit in fulls]
    counts = [np.asarray(part.counts) for part in parts]
    if all(c.shape == whole.counts.shape for c in counts):
        same = bool(np.allclose(sum(counts), np.asarray(whole.counts))) and _goals_add_up(whole, parts)
    else:
        same = abs(sum(fit.n_decisions for fit in fulls) - restricted.n_decisions) == 0
    if not same:
        n, of = sum(fit.n_decisions for fit in fulls), restricted.n_decisions
        got = f"{n} decisions; the restricted model has {of}" if n != of else f"{n} different decisions"
        raise InvalidInput("full", "fits to the same decisions, in total, as the restricted model", got)


def _goals_add_up(whole: Any, parts: Sequence[Any]) -> bool:
    """The parts' decisions toward each goal are those of the whole."""
    wanted, total = _by_goal(whole), dict[tuple[int, int, int], float]()
    for key, often in (pair for part in parts for pair in _by_goal(part).items()):
        total[key] = total.get(key, 0.0) + often
    return total.keys() == wanted.keys() and all(np.isclose(total[key], wanted[key]) for key in wanted)


def _size(fit: Any, joint: bool) -> int:
    """Parameters that the data can tell, and those of the transitions. Of a weight per state most are not told, and the
    status does not say so."""
    table = getattr(fit.reward_model, "tabular", False) and fit.theta.size <= MOST_PARAMETERS
    own = fit.identification.rank if table or fit.status.code == "unidentified" else fit.theta.size
    return own + (fit.mdp.estimated.psi.size if joint else 0)


def _llf(fit: Any, joint: bool) -> float:
    return fit.llf + (fit.mdp.estimated.llf if joint else 0.0)


def _restrictions(names: list[str], hypothesis: Any) -> tuple[Floats, Floats]:
    if is_mapping(hypothesis) or rows_of(hypothesis) is not None:
        return _named(names, hypothesis)
    expected = f'a dict such as {{"{names[0]}": 0.0}}, or (R, q) with {len(names)} columns'
    if not isinstance(hypothesis, tuple) or len(hypothesis) != 2:
        raise InvalidInput("hypothesis", expected, shown(hypothesis))
    R, q = hypothesis
    R = by_parameter("hypothesis", by_column("hypothesis", R, names), names)
    R, q = (require_floats("hypothesis", part, expected) for part in (R, q))
    R, q = np.atleast_2d(R), np.atleast_1d(q)
    if R.shape[1:] != (len(names),) or q.shape != (len(R),):
        raise InvalidInput("hypothesis", expected, shown(hypothesis))
    for part, numbers in (("R", R), ("q", q)):
        if not np.isfinite(numbers).all():
            raise InvalidInput("hypothesis", "finite numbers", f"{numbers[~np.isfinite(numbers)][0]:g} in {part}")
    return R, q


def _named(names: list[str], hypothesis: Any) -> tuple[Floats, Floats]:
    R, q = np.zeros((len(hypothesis), len(names))), np.zeros(len(hypothesis))
    for i, (name, target) in enumerate(hypothesis.items()):
        for one, sign in ((name, 1.0), (target, -1.0)) if isinstance(target, str) else ((name, 1.0),):
            R[i, parameter_named("hypothesis", one, names)] += sign
        if not isinstance(target, str):
            q[i] = as_number(target)
            if not np.isfinite(q[i]):
                remedy = remedy_for(target)
                raise InvalidInput("hypothesis", "numbers or names", shown(target), str(name), remedy)
    if not len(hypothesis):
        raise InvalidInput("hypothesis", "at least one restriction", "none")
    return R, q


def _chi_square(name: str, statistic: float, df: int, detail: str = "") -> TestResult:
    from scipy.special import chdtrc

    return TestResult(name, statistic, df, float(chdtrc(df, statistic)), detail)
