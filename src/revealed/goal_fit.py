"""The result of every method where trips have goals: one reward, and behaviour toward each goal (theory R1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import Floats, Ints, as_list
from revealed.demonstrations import Demonstrations
from revealed.errors import InvalidInput
from revealed.fit import AnyFit
from revealed.gates import require_instance
from revealed.goal_cases import EachGoal, StoredPolicies, matched
from revealed.goal_first_step import goal_policies
from revealed.goal_likelihood import by_trip, trip_names
from revealed.goal_rows import GoalRows
from revealed.goal_values import GoalValues, Toward, value_toward
from revealed.naming import is_label, label_array
from revealed.objective import Objective, PlainPart
from revealed.paths import Moves
from revealed.positions import labelled
from revealed.rewards.base import cases_by, of_trips, reward_table
from revealed.route_cases import RouteCases
from revealed.voices import shown

if TYPE_CHECKING:
    import pandas as pd

    from revealed.goal_inference import GoalEvidence

_FOR_EACH = {
    "policy": "policy_for",
    "log_policy": "log_policy_for",
    "value": "value_for",
    "q": "q_for",
    "pi_tilde": "policy_for",
    "predict": "policy_for",
    "table": "policy_for",
}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class GoalFit(AnyFit):
    """An estimated reward and the behaviour it implies toward each goal.

    `goals` are those that were seen, by their labels (indices where states have none); `policy_for`, `value_for` and
    similar methods take any state as a goal, given in the same way. Behaviour is that of the soft optimum at the
    estimate; for the goals that were seen CCP, and NPL that has not settled, give that of their own objective. `AnyFit`
    describes the rest: `theta` (K,), `reward` (S, A), `llf`, `status`, ….
    """

    stored: StoredPolicies | None = field(default=None)  # π̃ of an NPL that has not settled

    def __getattr__(self, name: str) -> Any:
        if name in _FOR_EACH:
            remedy = f"Use fit.{_FOR_EACH[name]}(goal)."
            raise GoalsHaveTheirOwn.conflict(f"fit.{name}", "depends on the goal of a trip", remedy=remedy)
        if name == "demand_curve":
            remedy = "Use fit.counterfactual(params={name: value}) for each value."
            raise GoalsHaveTheirOwn.conflict(f"fit.{name}", "does not apply to trips with goals", remedy=remedy)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def goals(self) -> tuple[Any, ...]:
        """Labels of the trips' goals; their indices if states have no labels."""
        return tuple(label_array(self.mdp.state_labels, self.goal_states).tolist())

    @property
    def goal_states(self) -> Ints:
        """(G,): the goals of the trips as indices of states."""
        found = self.demonstrations.goal_states
        assert found is not None
        return found

    def _state(self, state: Any, argument: str = "goal") -> int:
        """The index of a state that is given by its label, or by its index where there are none."""
        return self.mdp.state_named(state, argument)

    def _origin(self, origin: Any) -> int:
        """The same of where a trip began; −1 where that is not said."""
        return -1 if origin is None else self._state(origin, "origin")

    @property
    def n_trips(self) -> int:
        return self.demonstrations.origins.size

    @property
    def n_observations(self) -> float:
        """The number of trips: a trip is one draw of a path, however many decisions it took."""
        steps = self.demonstrations.steps
        assert steps is not None
        return float(self.demonstrations.step_weights[steps.first].sum())

    @property
    def usual_errors(self) -> str:
        """Clusters of travellers, or of trips if travellers are not known. "robust", the sandwich over trips, where one
        person made all of them; "hessian" where the reward has no scores, or there is a single trip."""
        from revealed.goal_inference import has_scores

        if not has_scores(self.reward_model, self._seen.rho.size):
            return super().usual_errors
        if self.demonstrations.n_agents > 1:
            return "cluster"
        return "robust" if self.n_trips > 1 and self.demonstrations.visit_discount == 1.0 else super().usual_errors

    def states(self, argument: str, given: Any) -> list[int]:
        """Indices of states that are given by their labels, or by their indices where there are none."""
        listed = [given] if is_label(given, self.mdp.state_labels) else as_list(given)
        if not listed:
            raise InvalidInput(argument, "a sequence of states, one per trip", shown(given))
        return [self._state(state, argument) for state in listed]

    @cached_property
    def _pseudo(self) -> bool:
        """Whether behaviour was estimated under a given π̃."""
        return not (self.own_policy or bool(self.settled))

    def case_table(self, goal: int, origin: int = -1) -> Floats:
        """(S, A): the rewards of trips to this goal."""
        if not of_trips(self.reward_model):
            return self.reward
        own: Any = self.reward_model
        table = reward_table(own.toward(goal, origin), self.theta, self.mdp)
        return labelled(np.where(np.isnan(self.reward), np.nan, table), self.mdp)

    def reward_for(self, goal: Any, origin: Any = None) -> Floats:
        """(S, A): the rewards of trips to `goal`: `reward`, unless rewards depend on the trip."""
        return self.case_table(self._state(goal), self._origin(origin))

    def toward(self, goal: Any, origin: Any = None) -> Toward:
        """The soft optimum at the estimate for trips to `goal`; `origin` matters only if the reward depends on where a
        trip began."""
        g, o = self._state(goal), self._origin(origin)
        if not of_trips(self.reward_model):
            return self._values.toward(g)
        if cases_by(self.reward_model) == "pair" and origin is None:
            raise InvalidInput.conflict("origin", "is required: the reward depends on where the trip begins")
        return GoalValues(self.mdp, self.case_table(g, o), self.options["solver"]).toward(g)

    @cached_property
    def _values(self) -> GoalValues:
        return GoalValues(self.mdp, self.reward, self.options["solver"])

    def _own(self, goal: Any, origin: Any) -> PlainPart | None:
        """The goal's part of the objective, where behaviour was estimated under a given π̃; else None."""
        self._origin(origin)  # which matters only to rewards of trips, but is a state if it is given
        if not self._pseudo or cases_by(self.reward_model) != "goal":
            return None
        case = np.flatnonzero(self.cases.rows.goal == self._state(goal))
        return self.cases.plain(int(case[0]), self.reward_model, self.theta) if case.size else None

    def log_policy_for(self, goal: Any, origin: Any = None) -> Floats:
        """(S, A): log choice probabilities on the way to `goal`; −∞ for what does not lead there."""
        own = self._own(goal, origin)
        return labelled(self.toward(goal, origin).log_policy if own is None else own.log_policy, self.mdp)

    def policy_for(self, goal: Any, origin: Any = None) -> Floats:
        """(S, A): choice probabilities on the way to `goal`; zero at the goal and where it is out of reach."""
        return labelled(np.exp(self.log_policy_for(goal, origin)), self.mdp)

    def value_for(self, goal: Any, origin: Any = None) -> Floats:
        """(S,): the soft value of being on the way to `goal`: 0 there, −∞ where it is out of reach."""
        own = self._own(goal, origin)
        found = self.toward(goal, origin).value if own is None else value_toward(own.case.mdp, self.mdp, own.value)
        return labelled(found, self.mdp)

    def q_for(self, goal: Any, origin: Any = None) -> Floats:
        """(S, A): the soft values of actions on the way to `goal`."""
        own = self._own(goal, origin)
        return labelled(self.toward(goal, origin).q if own is None else own.q, self.mdp)

    @cached_property
    def cases(self) -> Any:
        """What the objective sums over, with the weights of the sample."""
        return goal_cases(self._seen, self._given(self._seen), self.options["solver"])

    @cached_property
    def _seen(self) -> GoalRows:
        """The states in which trips to each goal were seen, with the weights of the sample."""
        return GoalRows.of(self.mdp, self.demonstrations, cases_by(self.reward_model))

    def _given(self, rows: GoalRows) -> Any:
        if not self._pseudo:
            return None
        return self.stored or goal_policies(rows, self.options["first_step"], self.reward_model)

    @cached_property
    def evidence(self) -> GoalEvidence:
        """Scores and information at the estimate; of a settled NPL, those of the likelihood (theory E4)."""
        from revealed.goal_inference import GoalEvidence

        point = Objective(self.reward_model, [self.cases], self.options["l2"]).at(self.theta)
        if point.problem is not None:
            raise point.problem
        rows, demos = self.cases.rows, self.demonstrations
        trips, often = rows.by_trip(demos)
        known = {"even": demos.visit_discount == 1.0, "groups": self.groups, "copies": demos.agent_weights}
        return GoalEvidence(point, rows.by_agent, demos.ids, **known, trips=trips, often=often)

    @property
    def near_value(self) -> None:
        return None

    def __getstate__(self) -> dict[str, Any]:
        """Without what holds factorisations; it is made again when asked for."""
        return {
            name: value
            for name, value in super().__getstate__().items()
            if name not in ("cases", "_values", "_choices", "_seen")
        }

    def log_likelihood_by_trip(self, demonstrations: Demonstrations | None = None) -> pd.Series:
        """The log likelihood of each trip: of those observed, or of others, held out, on the same model."""
        import pandas as pd

        demos = self.demonstrations if demonstrations is None else demonstrations
        require_instance("demonstrations", demos, Demonstrations, "rv.Demonstrations with goals")
        values = by_trip(self.mdp, demos, self._cases_of, self.reward_model, self.theta)
        return pd.Series(values, index=pd.Index(trip_names(demos), name="trip", tupleize_cols=False), name="llf")

    def _cases_of(self, rows: GoalRows) -> Any:
        """Cases like those of the fit. CCP, and NPL that has not settled, judge trips by their own π̃ where it is known
        for a goal, and by the soft optimum elsewhere."""
        given = matched(self.cases.given, self.cases.rows, rows) if self._pseudo else None
        return goal_cases(rows, given, self.options["solver"])

    def seen_choices(self) -> tuple[GoalRows, Floats]:
        """The states in which trips to each goal were seen, and log π_θ (R, A) there, whatever the weighting."""
        rows = GoalRows.of(self.mdp, self.demonstrations, cases_by(self.reward_model), discounted=False)
        return rows, self._cases_of(rows).at(self.reward_model, self.theta, {}).choices.log_policy

    def flows(self) -> pd.DataFrame:
        """Observed and expected use of each state by trips with the same origins and goals: a row per state with
        columns observed and expected; first and last states count."""
        from revealed.goal_flows import flows_frame

        return flows_frame(self)

    def simulate(
        self,
        n: int | None = None,
        seed: int | None = None,
        origins: Any = None,
        destinations: Any = None,
        longest: int | None = None,
    ) -> Demonstrations:
        """Trips under the estimated reward: from each of `origins` to the destination beside it, or `n` trips between
        origins and destinations drawn from those observed; by default as many as were observed, between the same.
        Where trips have weights, each counts as often as its weight says, as in `flows`."""
        from revealed.trip_simulation import simulate_like

        return simulate_like(self, n, seed, origins, destinations, longest)

    def counterfactual(
        self,
        params: Any = None,
        mdp: Any = None,
        reward: Any = None,
        bands: str | None = "auto",
        level: float = 0.95,
        trips: Any = None,
        **bootstrap: Any,
    ) -> Any:
        """What these travellers would do if something changed: flows and welfare before and after, with bands.

        As `Fit.counterfactual`; `trips` are the trips to predict, by default those observed: demonstrations with goals,
        or numbers of trips, as a dict from (origin, destination) to trips or a table with such columns.
        """
        from revealed.goal_counterfactual import goal_counterfactual

        return goal_counterfactual(self, params, mdp, reward, bands, level, trips, **bootstrap)


class GoalsHaveTheirOwn(InvalidInput, AttributeError):
    """Trips have goals, and each goal its own policy and value. Remedy: `fit.policy_for(goal)` and similar methods."""


def goal_cases(rows: GoalRows, given: Any, solver: str = "auto", work: Any = None) -> RouteCases | EachGoal:
    """Sums over paths where π̃ = π_θ, moves are certain and nothing is discounted; each goal by itself elsewhere."""
    moves = Moves.of(rows.mdp) if given is None and solver == "auto" else None
    return EachGoal(rows, given, solver, work) if moves is None else RouteCases(rows, moves, work)
