"""What was chosen against what a fit predicts, as arrays: expected counts, standardised residuals, goodness of fit.

Given the states, decisions are independent draws from π(·|s). So n(s, a) is binomial with mean n(s)π(a|s), and

    z(s, a) = (n(s, a) − n(s)π(a|s)) / √(n(s)π(a|s)(1 − π(a|s)))

has mean zero and variance one if the model is true. That θ was estimated from the same data makes the z a little
smaller than that; with many visits per parameter it does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from revealed.checks import Bools, Floats, Ints
from revealed.errors import RevealedError
from revealed.hypotheses import quadratic_form

ENOUGH = 5.0  # expected decisions for each action of states whose choices a χ² may compare
MOST_GROUPS = 20  # of states that are pooled: more would be weaker against what matters, a drift along the prediction
HALF = 0.5  # of the decisions, at least, are in the groups that are compared
MOST_PARAMS = 100  # beyond, the information that tells how many are free takes long
POOR = 0.001  # probability below which chance is no explanation of what a model misses
LIKE = 1e-9  # relative difference of two probabilities that are one and the same


@dataclass(frozen=True, eq=False)
class ChoiceFit:
    """`counts` (S, A) of decisions seen, `log_policy` (S, A) of the fit, `feasible` (S, A)."""

    counts: Floats = field(repr=False)
    log_policy: Floats = field(repr=False)
    feasible: Bools = field(repr=False)

    @staticmethod
    def of(fit: Any) -> ChoiceFit:
        if fit.demonstrations.goals is not None:
            return TripChoices.of_trips(fit)
        return ChoiceFit(fit.demonstrations.counts, fit.log_policy, fit.mdp.feasible)

    @property
    def tested(self) -> ChoiceFit:
        """The choices that a χ² compares: these, or with goals those on the way to each by itself."""
        return self

    @cached_property
    def visited(self) -> ChoiceFit:
        """The same in the states that were visited alone: of a large model a small part."""
        seen = np.flatnonzero(self.visits > 0.0)
        if seen.size == len(self.visits):
            return self
        return ChoiceFit(self.counts[seen], self.log_policy[seen], self.feasible[seen])

    @cached_property
    def visits(self) -> Floats:
        """(S,): n(s)."""
        return self.counts.sum(axis=1)

    @cached_property
    def policy(self) -> Floats:
        """(S, A): π(a|s), zero where an action is not offered."""
        return np.where(self.feasible, np.exp(self.log_policy), 0.0)

    @cached_property
    def expected(self) -> Floats:
        """(S, A): n(s)π(a|s)."""
        return self.visits[:, None] * self.policy

    @cached_property
    def variance(self) -> Floats:
        """(S, A): n(s)π(1 − π); 1 − π is read off the logarithm, which a π near one does not round away."""
        return self.expected * np.where(self.feasible, -np.expm1(np.minimum(self.log_policy, 0.0)), 0.0)

    @cached_property
    def frequencies(self) -> Floats:
        """(S, A): n(s, a)/n(s), NaN where nobody was."""
        with np.errstate(invalid="ignore"):
            return np.where(self.visits[:, None] > 0.0, self.counts / self.visits[:, None], np.nan)

    @cached_property
    def residuals(self) -> Floats:
        """(S, A): z of the module's docstring, NaN where there was no choice, ±∞ where the impossible happened."""
        return standardise(self.counts - self.expected, self.variance)

    @cached_property
    def totals(self) -> tuple[Floats, Floats, Floats]:
        """(A,) each: how often an action was taken, how often it is expected, and the standardised difference."""
        observed, expected = self.counts.sum(axis=0), self.expected.sum(axis=0)
        return observed, expected, standardise(observed - expected, self.variance.sum(axis=0))

    def worst(self, most: int) -> Ints:
        """(≤ most, 2): the `compared` pairs (s, a) with the largest |z|, the largest first."""
        size = np.where(self.compared, np.abs(self.residuals), -1.0).reshape(-1)
        order = np.argsort(-size, kind="stable")[:most]
        return np.column_stack(np.divmod(order[size[order] >= 0.0], self.counts.shape[1])).astype(np.intp)

    @property
    def llf_at_random(self) -> float:
        """Σ n(s) log 1/|A(s)|: the log likelihood of uniform choice among feasible actions."""
        return float(-self.visits @ np.log(np.maximum(self.feasible.sum(axis=1), 1)))

    @property
    def llf_of_frequencies(self) -> float:
        """Σ n(s, a) log n(s, a)/n(s): no policy can have more on these data."""
        seen = self.counts > 0.0
        return float(self.counts[seen] @ np.log(self.frequencies[seen]))

    @property
    def hit_rate(self) -> float:
        """Share of the decisions between several actions that were for the most likely one; where several are equally
        likely, each is as good a guess. NaN where there was nothing to choose."""
        choice = self.feasible.sum(axis=1) > 1
        best = np.where(self.feasible, self.policy, 0.0).max(axis=1, keepdims=True)
        modal = self.feasible & (self.policy >= (1.0 - LIKE) * best)
        hits = np.where(modal, self.counts, 0.0).sum(axis=1) / np.maximum(modal.sum(axis=1), 1)
        total = float(self.visits[choice].sum())
        return float(hits[choice].sum()) / total if total > 0.0 else np.nan

    @cached_property
    def compared(self) -> Bools:
        """(S, A): pairs whose z says something: one of two where two actions are all there is, since they mirror."""
        mask = ~np.isnan(self.residuals)
        if self.mirrored:
            mask[:, int(np.argmax(self.counts.sum(axis=0)))] = False
        return mask

    @cached_property
    def mirrored(self) -> bool:
        """Whether two actions are all there is, and both are offered in every state that was visited."""
        return self.counts.shape[1] == 2 and bool(self.feasible[self.visits > 0.0].all())

    def groups(self) -> list[Ints]:
        """States whose choices a χ² may compare together: every action on offer is expected `ENOUGH` times in each.

        One by one where all visited states allow it; else states that offer the same are pooled in the order of what
        is predicted of them, at most `MOST_GROUPS`, as Hosmer and Lemeshow do.
        """
        seen = np.flatnonzero((self.visits > 0.0) & (self.feasible.sum(axis=1) > 1)).astype(np.intp)
        if (np.where(self.feasible[seen], self.expected[seen], np.inf) >= ENOUGH).all():
            return list(seen[:, None])
        _, kind = np.unique(self.feasible[seen], axis=0, return_inverse=True)
        alike = np.split(seen[np.argsort(kind, kind="stable")], np.cumsum(np.bincount(kind.reshape(-1)))[:-1])
        return [group for states in alike for group in self._pooled(states)]

    def _pooled(self, states: Ints) -> list[Ints]:
        offered = np.flatnonzero(self.feasible[states[0]])
        ranges = np.ptp(self.policy[np.ix_(states, offered)], axis=0)
        telling = offered[np.argmax(ranges >= (1.0 - LIKE) * ranges.max())]  # of equal ones the first, rounding or not
        states = states[np.argsort(self.policy[states, telling].round(12), kind="stable")]
        expected = self.expected[np.ix_(states, offered)]
        ends, total = [], np.zeros(offered.size)
        for k, row in enumerate(expected):
            total = total + row
            if total.min() >= ENOUGH:
                ends.append(k + 1)
                total = np.zeros(offered.size)
        if not ends:
            return []
        some = np.unique(np.linspace(0, len(ends), min(len(ends), MOST_GROUPS) + 1).astype(int))[1:-1]
        return np.split(states, [ends[k - 1] for k in some])  # what is left over goes with the last


@dataclass(frozen=True, eq=False)
class TripChoices(ChoiceFit):
    """Choices on the way to many goals, pooled: π(a|s) is the mean over those who came by, whose `rows` are a state on
    the way to a goal each; `state` (R,) says which."""

    rows: ChoiceFit = field(repr=False)
    state: Ints = field(repr=False)

    @classmethod
    def of_trips(cls, fit: Any) -> TripChoices:
        seen, log_policy = fit.seen_choices()
        rows = ChoiceFit(seen.rho, log_policy, seen.feasible)
        S = fit.mdp.n_states
        counts, expected = (_by_state(table, seen.state, S) for table in (rows.counts, rows.expected))
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.log(expected) - np.log(counts.sum(axis=1, keepdims=True))
        offered = _by_state(rows.feasible.astype(np.float64), seen.state, S) > 0.0
        return cls(counts, np.where(offered, np.minimum(mean, 0.0), -np.inf), offered, rows, seen.state)

    @cached_property
    def variance(self) -> Floats:
        """(S, A): Σ n π(1 − π) over the goals, which is less than that of the mean π."""
        return _by_state(self.rows.variance, self.state, len(self.counts))

    @cached_property
    def visited(self) -> ChoiceFit:
        return self.rows

    @property
    def llf_at_random(self) -> float:
        return self.rows.llf_at_random

    @property
    def llf_of_frequencies(self) -> float:
        return self.rows.llf_of_frequencies

    @property
    def hit_rate(self) -> float:
        return self.rows.hit_rate

    @cached_property
    def mirrored(self) -> bool:
        return False

    @property
    def tested(self) -> ChoiceFit:
        return self.rows


def _by_state(table: Floats, state: Ints, n_states: int) -> Floats:
    """(S, A): sums of rows that belong to the same state."""
    out = np.zeros((n_states, table.shape[1]))
    np.add.at(out, state, table)
    return out


def standardise(difference: Floats, variance: Floats) -> Floats:
    """Differences in units of their standard deviations; NaN where both are nothing."""
    tiny = 1e-9 * (1.0 + np.abs(difference))
    with np.errstate(divide="ignore", invalid="ignore"):
        z = difference / np.sqrt(variance)
    return np.where((variance == 0.0) & (np.abs(difference) <= tiny), np.nan, z)


@dataclass(frozen=True)
class ChiSquare:
    """A test of the predicted probabilities: X² = Σ_g d_g' C_g⁺ d_g over groups g of states, d_g the difference of
    observed and expected decisions by action and C_g its covariance; Pearson's where each state is a group.

    One by one it has `least` degrees of freedom: one per alternative beyond the first, less one per free parameter.
    For pooled states it lies between χ² with `least` and with `most`, since what was fitted is more than what is
    compared; `p` is the probability of a larger X² for each of the two.
    """

    statistic: float
    least: int
    most: int
    p: tuple[float, float]
    groups: int
    states: int

    @property
    def pooled(self) -> bool:
        return self.groups < self.states

    @property
    def poor(self) -> bool:
        """Whether the model misses what these data show by more than chance, however degrees of freedom are counted."""
        return self.p[1] < POOR

    @property
    def brief(self) -> str:
        """In a line of a table."""
        if not self.pooled:
            return f"X² = {self.statistic:.2f}, df {self.least}, p {_size(self.p[0])}"
        low, high = (_size(p) for p in self.p)
        p = low if low == high else f"{low} to {high.removeprefix('= ')}"
        return f"X² = {self.statistic:.2f}, df {self.least} to {self.most}, p {p}"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return {"statistic": self.statistic, "df": [self.least, self.most], "p": list(self.p), "poor": self.poor}

    def __str__(self) -> str:
        if not self.pooled:
            degrees = f"{self.least} degree{'' if self.least == 1 else 's'} of freedom"
            return f"X² = {self.statistic:.2f} on {degrees}, p {_size(self.p[0])}"
        degrees = f"{self.least} to {self.most} degrees of freedom"
        low, high = (_size(p) for p in self.p)
        between = low if low == high else f"between {self.p[0]:.3f} and {self.p[1]:.3f}"
        return f"X² = {self.statistic:.2f} on {degrees}, p {between}"


def _size(p: float) -> str:
    """A probability as it is read: zero it is not."""
    return "< 0.001" if p < 0.0005 else f"= {p:.3f}"


def chi_square(fit: Any, choices: ChoiceFit) -> ChiSquare | str:
    """The test, or a sentence that says why there is none."""
    reason = _why_no_test(fit)
    if reason:
        return reason
    groups = choices.groups()
    if sum(float(choices.visits[g].sum()) for g in groups) < HALF * choices.visits.sum():
        return _TOO_FEW.format(enough=ENOUGH)
    most = sum(int(choices.feasible[g[0]].sum()) - 1 for g in groups)
    least = most - _n_free(fit)
    if least <= 0:
        return "No χ² test: there are no degrees of freedom left."
    from scipy.special import chdtrc

    statistic = sum(_distance(choices, group) for group in groups)
    p = float(chdtrc(least, statistic)), float(chdtrc(most, statistic))
    return ChiSquare(statistic, least, most, p, len(groups), sum(g.size for g in groups))


def _distance(choices: ChoiceFit, group: Ints) -> float:
    """d' C⁺ d with C = Σ n(s)(diag π_s − π_s π_s'), whatever differs between the states of the group."""
    offered = np.flatnonzero(choices.feasible[group[0]])
    at = np.ix_(group, offered)
    d = (choices.counts[at] - choices.expected[at]).sum(axis=0)
    if group.size == 1:
        return float(np.sum(d**2 / choices.expected[at][0]))
    C = np.diag(choices.expected[at].sum(axis=0)) - choices.expected[at].T @ choices.policy[at]
    return quadratic_form(d[1:], C[1:, 1:])[0]  # the first is minus the sum of the rest


def _why_no_test(fit: Any) -> str:
    counts = fit.demonstrations.counts
    if fit.status.code == "separated":
        return "No χ² test: the likelihood has no maximum, so there is no estimate to test."
    if not fit.at_maximum:
        return "No χ² test: the search did not finish."
    if fit.options.get("weighting") != "sample" or fit.demonstrations.visit_discount != 1.0:
        return "No χ² test: the estimate does not maximise the likelihood of the decisions as they were counted."
    if fit.options.get("l2", 0.0) > 0.0:
        return "No χ² test: the penalty pulls the estimate away from what fits best."
    if not np.array_equal(counts, np.round(counts)):
        return "No χ² test: decisions are weighted, so counts do not have the usual variance."
    if not getattr(fit.reward_model, "linear", False) or fit.theta.size > MOST_PARAMS:
        return "No χ² test: the number of free parameters of such a flexible reward is not known."
    return ""


def _n_free(fit: Any) -> int:
    """Parameters that choices can tell; of a weight per state, fewer than there are."""
    try:
        return int(fit.identification.rank)
    except RevealedError:
        return int(fit.theta.size)


_TOO_FEW = (
    "No χ² test: there are too few decisions to pool states into groups in which every action is expected {enough:g} "
    "times or more."
)
