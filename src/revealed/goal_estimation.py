"""One fit under way where trips have goals: what differs from `estimation.py` (theory R5–R7).

The objective sums over the goals; π̂_E pools them; and where nothing is discounted a start is found, since at θ = 0 no
network with a way round has a value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from revealed.chain import Chain
from revealed.checks import Floats
from revealed.demonstrations import Demonstrations
from revealed.diagnosis import Status
from revealed.errors import InvalidOption, RevealedError, ValueDoesNotExist
from revealed.estimation import Options, Run
from revealed.goal_cases import MOST_STORED, EachGoal, StoredPolicies
from revealed.goal_first_step import goal_policies
from revealed.goal_fit import GoalFit, goal_cases
from revealed.goal_rows import GoalRows
from revealed.mdp import MDP
from revealed.objective import Evaluation, Objective
from revealed.optimize import Search
from revealed.positions import labelled
from revealed.rewards.base import Reward, cases_by, is_linear
from revealed.route_cases import RouteCases
from revealed.voices import arg, either, words

WORTH = 0.01  # gain for which the start moves on: weights that run away would follow any gain for ever
LOWER = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)  # how much a move may cost at the start


def run_for(method: str, reward: Reward, options: Options, mdp: MDP, demos: Demonstrations) -> Run:
    """A fit under way: with goals where the demonstrations have some, and else where the model is placed.

    Trips with goals are estimated on the host, and so is what asks for a factorisation (`solver="lu"`).
    """
    has_goals = isinstance(demos, Demonstrations) and demos.goals is not None
    if not isinstance(mdp, MDP) or mdp.device is None:
        return (GoalRun if has_goals else Run)(method, reward, options, mdp, demos)
    if has_goals or options.solver == "lu":
        return (GoalRun if has_goals else Run)(method, reward, options, mdp.to("host"), demos)
    from revealed.device_estimation import DeviceRun

    return DeviceRun(method, reward, options, mdp, demos)


class GoalRun(Run):
    """A fit of trips with goals. π̃ is None for π_θ, or a policy for each goal."""

    usual_step = "logit"

    @cached_property
    def observed(self) -> GoalRows:
        return GoalRows.of(self.mdp, self.demos, cases_by(self.reward))

    @property
    def expert(self) -> Any:
        """π̂_E for each goal, estimated once."""
        if self._expert is None:
            self._expert = goal_policies(self.observed, self.options.first_step, self.reward)
        return self._expert

    @property
    def expert_notes(self) -> tuple[str, ...]:
        return getattr(self._expert, "notes", ())

    def rho(self) -> Any:
        if self.options.weighting == "sample":
            return self.observed
        return self._occupancy_rows()

    def own(self) -> Any:
        return None

    def given(self, pi_tilde: Any, log_pi_tilde: Any = None) -> Any:
        return pi_tilde

    def make_objective(self, rho: Any, pi_tilde: Any) -> Objective:
        cases = goal_cases(rho, pi_tilde, self.options.solver, self.work)
        if isinstance(cases, RouteCases) and hasattr(self, "trace"):
            cases.tell = lambda text: self.trace.bar.update(text, advance=0)
        return Objective(self.reward, [cases], self.options.l2)

    def maximise(self, pi_tilde: Any, start: Floats) -> Search:
        if pi_tilde is None and self.options.start is None and self.mdp.discount == 1.0:
            start = self._found(start)
        return super().maximise(pi_tilde, start)

    # -- a start with a value -----------------------------------------------------------------------------------------

    def _found(self, start: Floats) -> Floats:
        """`start` if it has a value; else the best of a ray along which every move costs more; else CCP's estimate."""
        objective = self.make_objective(self._rho, None)
        if np.isfinite(objective.at(start).value):
            return start
        best: Evaluation | None = None
        for theta in self._lower(start):
            point = objective.at(theta)
            if best is not None and not point.value > best.value + WORTH * abs(best.value):
                break
            best = point if np.isfinite(point.value) else best
        if best is not None:
            return best.theta
        theta = self.ccp_start()
        if not np.isfinite(objective.at(theta).value):
            raise ValueDoesNotExist(_NO_START)
        return theta

    def _lower(self, start: Floats) -> Iterator[Floats]:
        direction = self._dear(start)
        if direction is not None:
            yield from (start + cost * direction for cost in LOWER)

    def _dear(self, start: Floats) -> Floats | None:
        """The direction in which a move costs one more on average; for features, those that are costs or their
        negatives throughout share it, each in its own units."""
        feasible = self.mdp.feasible
        if is_linear(self.reward) and not getattr(self.reward, "tabular", False):
            low, high, mean = self._ranges()
            signs = np.where(low >= 0.0, -1.0, np.where(high <= 0.0, 1.0, 0.0))
            used = (signs != 0.0) & (mean > 0.0)
            weights = np.divide(signs, mean, out=np.zeros_like(mean), where=used)
            return weights / used.sum() if used.any() else None
        slope = self.reward.vjp(start, feasible.astype(np.float64))
        size = float(slope @ slope)
        return -slope * feasible.sum() / size if size > 0.0 else None

    def _ranges(self) -> tuple[Floats, Floats, Floats]:
        """Least, largest and mean size of each feature over the feasible pairs."""
        J: Any = self.reward.jacobian(self.start)  # pyright: ignore[reportAttributeAccessIssue]
        per_pair = J.shape[0] == self.mdp.feasible.size
        X = J[np.flatnonzero(self.mdp.feasible if per_pair else self.mdp.feasible.any(axis=1))]
        X = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
        return X.min(axis=0), X.max(axis=0), np.abs(X).mean(axis=0)

    # -- weights of the paper -----------------------------------------------------------------------------------------

    def _occupancy_rows(self) -> GoalRows:
        """ρ = Occ^π̂E ⊙ π̂_E for each goal, trips as often as they were seen (theory O3)."""
        rows, starts = self.observed, self._starts()
        self._require_room("weighting", "the occupancies of all goals")
        states, rho, case = [], [], []
        for c in range(rows.n_cases):
            mdp = self.mdp.toward_state(int(rows.goal[c]))
            policy, _ = self.expert.of(c, mdp)
            chain = Chain(mdp, labelled(policy, mdp), self.options.solver, work=self.work)
            visits = np.maximum(chain.backward(starts[c]), 0.0)
            here = np.flatnonzero((visits > 0.0) & ~mdp.terminal)
            states.append(here)
            rho.append(visits[here, None] * policy[here])
            case.append(np.full(here.size, c))
        parts = {"state": np.concatenate(states), "rho": np.concatenate(rho), "case": np.concatenate(case)}
        return replace(rows, **parts)

    def _starts(self) -> Floats:
        """(C, S): where the trips of each case began, as shares of all trips; or the model's own start."""
        rows, steps = self.observed, self.demos.steps
        assert steps is not None
        assert steps.goal is not None
        first = np.flatnonzero(steps.first & (self.demos.step_weights > 0.0))  # others are in no row
        weight = self.demos.step_weights[first]
        case = rows.case_of(steps.goal[first], steps.state[first])
        out = np.zeros((rows.n_cases, self.mdp.n_states))
        np.add.at(out, (case, steps.state[first]), weight / weight.sum())
        return out if self.mdp.initial is None else out.sum(axis=1, keepdims=True) * self.mdp.initial

    def _require_room(self, name: str, what: str) -> None:
        pairs = self.observed.n_cases * self.mdp.feasible.size
        if pairs > MOST_STORED:
            what, remedy = (
                f"{what} do not fit into memory ({pairs:.2g} pairs)",
                "Use NFXP, which goes through the goals one by one.",
            )
            raise InvalidOption.impossible(what, None, remedy, name)

    def _transition_notes(self) -> tuple[str, ...]:
        """Transitions that were estimated from trips whose arrivals nobody saw lack the moves into the goals."""
        steps: Any = self.demos.steps
        last = np.append(steps.first[1:], True)
        arrived = bool(np.any(steps.next_state[last] == steps.goal[last]))
        notes = super()._transition_notes()
        return notes if arrived or self.mdp.estimated is None else (*notes, _NOBODY_ARRIVED)

    # -- NPL ----------------------------------------------------------------------------------------------------------

    def improved(self, best: Evaluation) -> tuple[Any, Any]:
        self._require_room("NPL", "the policies of all goals")
        cases: Any = best.objective.cases[0]
        return cases.policies(self.reward, best.theta), None

    def _distance(self, before: Any, after: Any) -> float:
        gaps = [0.0]
        for c, goal in enumerate(self.observed.goal):
            old, new = (policies.of(c, self.mdp.toward_state(int(goal)))[0] for policies in (before, after))
            gaps.append(float(np.abs(new - old).max(initial=0.0)))
        return max(gaps)

    def _result(self, best: Evaluation, status: Status) -> GoalFit:
        cases: Any = best.objective.cases[0]
        given = cases.given if isinstance(cases, EachGoal) else None
        stored = given if isinstance(given, StoredPolicies) and not self.settled else None
        return GoalFit(llf=self.llf(best), stored=stored, **self._told(best, status))

    def llf(self, best: Evaluation) -> float:
        """Of the decisions observed, whatever the weighting."""
        if self.options.weighting == "sample" and self.demos.visit_discount == 1.0:
            return best.parts[0].log_likelihood
        rows = GoalRows.of(self.mdp, self.demos, cases_by(self.reward), discounted=False)
        given = getattr(best.objective.cases[0], "given", None)
        try:
            return goal_cases(rows, given, self.options.solver).at(self.reward, best.theta, {}).log_likelihood
        except RevealedError:
            return float("nan")


_NOBODY_ARRIVED = words(
    "no trip was observed to arrive at its goal, so the estimated transitions lack the moves into the goals. If trips "
    f"did arrive, pass {arg('next_state')} (the goal, for the last decision of a trip)."
)
_COSTS = either(
    "such as a constant, pass start= with parameters that make moves costly, or use a discount below 1",
    "such as the constant of a road network (--columns …,constant); without a road network, a --discount below 1 "
    "works, too",
)
_NO_START = words(
    "no starting point was found: the soft value exists neither at the reward's own start, nor where moves cost more, "
    "nor at the CCP estimate. With discount 1 every cycle must have a cost: add a feature that makes every move "
    f"costly, {_COSTS}."
)
