"""A question about a fit: other parameters, another model, another reward.

A `Side` is one of the two worlds that are compared: it turns parameters (θ, ψ) into behaviour and knows its own
derivatives in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed.alignment import same_matrix, same_moves
from revealed.behaviour import Derivatives, Overall, Solved, solve_behaviour
from revealed.bellman import SoftBellman, whole_reward
from revealed.chain import NO_VALUE
from revealed.checks import Floats, as_floats, as_number, remedy_for, require_floats
from revealed.errors import InvalidInput, InvalidOption, InvalidReward, ValueDoesNotExist
from revealed.goal_values import NEVER_ARRIVES
from revealed.inference import slopes_on
from revealed.labels import how_many, in_short, label_it, listed, require_declared, spell
from revealed.linear_solvers import NEVER_ENDS
from revealed.matching import name_alike
from revealed.mdp import MDP, require_mdp
from revealed.naming import label_array, pair_in_words, places
from revealed.paths import NO_VALUE as OF_PATHS
from revealed.positions import AXES, by_position, in_order, labelled, parameter_named, require_by_name, same_labels
from revealed.reestimation import with_transitions
from revealed.rewards.base import Reward, align_reward, in_parameter_order, lift_reward, require_reward
from revealed.rewards.holes import filled
from revealed.starts import starts_of
from revealed.transitions import EstimatedTransitions, TransitionSlopes
from revealed.voices import either, shown

EPS = float(np.finfo(np.float64).eps)
OF_ITSELF = float(np.cbrt(EPS))  # step of a central difference, in units of a parameter without a standard error
OF_ERROR = 1e-3  # the same in standard errors, on whose scale the delta method takes functions to be straight
CHANGED_MOVES, CHANGED_REWARD = "changed transitions", "changed reward"  # where nothing tells more
CHANGED_ENDS, CHANGED_START = "changed terminal states", "changed start distribution"
SAME_MODEL = "the same model"


@dataclass(frozen=True)
class Setting:
    """θ' as a function of θ: parameters by position that are set to a number, or to a function of their estimate."""

    names: tuple[str, ...]
    changed: dict[int, float | Callable[[float], Any]]

    def value(self, theta: Floats) -> Floats:
        new = theta.copy()
        for k, rule in self.changed.items():
            new[k] = self._call(k, rule, theta[k]) if callable(rule) else rule
        return new

    def slope(self, theta: Floats, se: Floats | None = None) -> Floats:
        """(K,): dθ'_k/dθ_k, zero for a number that is set; `se` (K,) are the standard errors of θ, if known."""
        slope, steps = np.ones(theta.size), difference_steps(theta, se)
        for k, rule in self.changed.items():
            slope[k] = 0.0
            if callable(rule):
                high, low = theta[k] + steps[k], theta[k] - steps[k]
                slope[k] = (self._call(k, rule, high) - self._call(k, rule, low)) / (high - low)
        return slope

    def words(self, theta: Floats) -> list[str]:
        new = self.value(theta)
        shown = list(self.changed)[:4]
        more = [f"{len(self.changed) - 4} more"] if len(self.changed) > 4 else []
        return [f"{self.names[k]} {theta[k]:.5g} → {new[k]:.5g}" for k in shown] + more

    def _call(self, k: int, rule: Callable[[float], Any], at: float) -> float:
        number = as_number(rule(float(at)))
        if not np.isfinite(number):
            expected = "a function that turns the estimate into a number"
            raise InvalidInput(f"params[{self.names[k]!r}]", expected, f"{rule(float(at))!r} at {at:.5g}")
        return number


def difference_steps(theta: Floats, se: Floats | None = None) -> Floats:
    """(K,): how far to go to either side in a central difference, in the units of each parameter.

    A thousandth of the standard error, but so much that rounding of θ does not show. Where there is none the step is
    in proportion to θ itself; of zero nothing tells the units.
    """
    size = np.abs(theta)
    alone = OF_ITSELF * np.where(size > 0.0, size, 1.0)
    if se is None:
        return alone
    known = np.isfinite(se) & (se > 0.0)
    return np.where(known, np.maximum(OF_ERROR * np.where(known, se, 0.0), EPS ** (2.0 / 3.0) * size), alone)


def as_setting(params: Any, names: tuple[str, ...]) -> Setting:
    """From name → number or function (a dict, a Series), or from all K numbers."""
    if params is None:
        return Setting(names, {})
    require_by_name("params", params, names)
    pairs = params if hasattr(params, "items") else _all_of(params, names)
    changed: dict[int, float | Callable[[float], Any]] = {}
    for name, rule in pairs.items():
        number = as_number(rule)
        if not callable(rule) and not np.isfinite(number):
            expected = "a number, or a function of the estimate"
            raise InvalidInput(f"params[{name!r}]", expected, shown(rule), remedy=remedy_for(rule))
        changed[parameter_named("params", name, names)] = rule if callable(rule) else number
    return Setting(names, changed)


def _all_of(params: Any, names: tuple[str, ...]) -> dict[str, float]:
    expected = f"a dict from names to numbers or functions, or all {len(names)} numbers"
    numbers = require_floats("params", params, expected)
    if numbers.shape != (len(names),):
        raise InvalidInput("params", expected, f"shape {numbers.shape}")
    return dict(zip(names, numbers.tolist(), strict=True))


def find_action(mdp: MDP, action: Any) -> int:
    """The position of an action that is given by its label, or by its index where no label could be meant."""
    return int(places("action", [action], mdp.action_labels, mdp.n_actions, role="action")[0])


@dataclass(frozen=True, eq=False)
class Side:
    """A model, a reward (a function of θ, or a table) and a start: behaviour as a function of (θ, ψ).

    `estimated` are the transitions that follow ψ; None where T is what it is. `begins` says which start it is.
    """

    mdp: MDP
    reward: Reward | Floats = field(repr=False)
    setting: Setting
    start: Floats = field(repr=False)
    begins: str
    estimated: EstimatedTransitions | None
    solver: str = "auto"

    def at(self, theta: Floats, psi: Floats | None = None) -> Solved:
        side = self if psi is None else self.moved(psi)
        return solve_behaviour(side._bellman, side.table(theta), side.start)

    def moved(self, psi: Floats) -> Side:
        """The same world at other probabilities of what happens, or other counts of it where T has no ψ; itself where
        its T does not follow them."""
        if psi.size == 0 or self.estimated is None:
            return self
        return replace(self, mdp=with_transitions(self.mdp, self.estimated.drawn(psi)))

    @cached_property
    def _bellman(self) -> SoftBellman:
        return SoftBellman(self.mdp, self.solver)

    def table(self, theta: Floats) -> Floats:
        """(S, A) rewards, also of pairs that are not offered."""
        if isinstance(self.reward, np.ndarray):
            return self.reward
        return whole_reward(self.mdp, labelled(self.reward.value(self.setting.value(theta)), self.mdp))

    def derivatives(self, at: Solved, theta: Floats, n_psi: int, se: Floats | None = None) -> Derivatives:
        """In θ, whose standard errors are `se` (K,), and, where `n_psi` is not zero, in the transitions' ψ."""
        J = np.zeros((*self.mdp.feasible.shape, theta.size))
        if not isinstance(self.reward, np.ndarray):
            slope, new = self.setting.slope(theta, se), self.setting.value(theta)
            J = reward_jacobian(self.reward, new, self.mdp, None if se is None else se * np.abs(slope)) * slope
        return at.derivatives(J, self._moving(0, n_psi))

    def psi_derivatives(self, at: Solved, begin: int, end: int) -> Derivatives:
        """In some of the ψ alone."""
        return at.derivatives(np.zeros((*self.mdp.feasible.shape, 0)), self._moving(begin, end))

    def overall_slopes(self, at: Solved, n_psi: int) -> Overall:
        """Of shares and welfare in all ψ."""
        return at.overall_slopes(self._moving(0, n_psi))

    def _moving(self, begin: int, end: int) -> TransitionSlopes:
        """∂T/∂ψ; zero where this world's T does not follow ψ."""
        if self.estimated is None or begin == end:
            shape = (self.mdp.feasible.size, self.mdp.n_states)
            return TransitionSlopes.of([sp.csr_array(shape)] * (end - begin), shape)
        return self._slopes.some(begin, end)

    @cached_property
    def _slopes(self) -> TransitionSlopes:
        assert self.estimated is not None
        return slopes_on(self.mdp, self.estimated)


def reward_jacobian(reward: Reward, theta: Floats, mdp: MDP, se: Floats | None = None) -> Floats:
    """∂r/∂θ (S, A, K): the reward's own, or central differences of its table, whose steps follow the standard errors
    `se` (K,) where these are known."""
    S, A = mdp.feasible.shape
    if hasattr(reward, "jacobian"):
        J: Any = reward.jacobian(theta)  # pyright: ignore[reportAttributeAccessIssue]
        J = J.toarray() if hasattr(J, "toarray") else np.asarray(J)
    else:
        ends = [(theta + e, theta - e) for e in np.diag(difference_steps(theta, se))]
        ways = [filled(reward.value(up) - reward.value(down)) / (up - down).max() for up, down in ends]
        J = np.stack(ways, axis=-1)
    return np.broadcast_to(J.reshape(S, -1, theta.size), (S, A, theta.size))


def sides(fit: Any, params: Any, mdp: Any, reward: Any, initial: Any) -> tuple[Side, Side, list[str]]:
    """(before, after, what changed in words)."""
    if params is None and mdp is None and reward is None:
        remedy = either(
            'For example: params={"RC": 12.0}, mdp=fit.mdp.replace(discount=0.9), or reward=another.',
            "For example: --set RC=12 or --discount 0.9.",
        )
        raise InvalidInput.conflict(
            "counterfactual", "requires at least one change: params, mdp or reward", None, remedy
        )
    before = estimated_side(fit, initial)
    setting = as_setting(params, before.setting.names)
    words = setting.words(fit.theta)
    model = fit.mdp
    if mdp is not None:
        require_mdp(mdp)
        _require_declared_orders(mdp, fit.mdp)
        model = name_alike(mdp, fit.mdp.base or fit.mdp).in_order_of(fit.mdp)
        _require_one_order(fit.mdp, mdp, {"reward": reward, "initial": initial})
        words += _changed(fit.mdp, model)
    follows = before.estimated if _follows(fit.mdp if mdp is None else mdp, model, fit.mdp) else None
    new_reward = _reward_of(fit, model, reward, setting)
    words += [CHANGED_REWARD] if reward is not None else []
    start = starts_of(model, initial, fit.demonstrations, fit.mdp)
    after = Side(model, new_reward, setting, start.weights, start.words, follows, before.solver)
    return before, after, words


@contextmanager
def after_change(words: Sequence[str]) -> Iterator[None]:
    """Where values or visits cease to exist after a change, that change is at fault: no fit, and no other discount."""
    try:
        yield
    except ValueDoesNotExist as problem:
        causes = (text.partition(". ")[0] for text in (OF_PATHS, NO_VALUE, NEVER_ENDS, NEVER_ARRIVES))
        cause = next((cause for cause in causes if cause in problem.message), None)
        if cause is None:
            raise
        told = f"after the change ({', '.join(words)}) {cause}. Make the change smaller."
        raise ValueDoesNotExist(told) from problem


def _changed(before: MDP, after: MDP) -> list[str]:
    """What differs between two models, compared by what they say and not by whether they are one object."""
    words = [] if same_moves(before, after) else [CHANGED_MOVES]
    if not words and not np.array_equal(before.terminal, after.terminal):
        words = [CHANGED_ENDS]
    if after.discount != before.discount:
        words.append(f"discount {before.discount:g} → {after.discount:g}")
    starts = [None if mdp.initial is None else mdp.initial.tolist() for mdp in (before, after)]
    if starts[0] != starts[1]:
        words.append(CHANGED_START)
    return words or [SAME_MODEL]


def _follows(given: MDP, model: MDP, own: MDP) -> bool:
    """Whether the transitions of a model (`given`, and in the order of the fit) are those that were estimated: the very
    ones, or others that were estimated and say the same. A plain matrix stays as it is."""
    if given.estimated is None or own.estimated is None:
        return False
    same = given.estimated is own.estimated or same_moves(model, own)
    return same or (model.estimated is not None and same_matrix(model.estimated.matrix, own.estimated.matrix))


def _require_one_order(own: MDP, mdp: MDP, given: dict[str, Any]) -> None:
    """Of two models in different orders, positions could mean either: what comes along must have labels."""
    if mdp.in_order_of(own) is mdp:
        return
    for argument, value in given.items():
        if value is not None and by_position(value) and not _same_everywhere(value):
            role = next(r for r in AXES if not same_labels(_labels(own, r), _labels(mdp, r)))
            orders = " and ".join(listed(_labels(model, role)) for model in (own, mdp))
            rule = f"requires labels, because the two models have their {role}s in different orders ({orders})"
            remedy = "Pass a Series or DataFrame with labels, or a model in the order of fit.mdp."
            raise InvalidInput.conflict(argument, rule, remedy=remedy)


def _same_everywhere(value: Any) -> bool:
    """Whether an array holds one number only, so that its order does not matter."""
    numbers = as_floats(value)
    return numbers is not None and numbers.size > 0 and bool(np.all(numbers == numbers.reshape(-1)[0]))


def _labels(mdp: MDP, role: str) -> Any:
    return getattr(mdp.base or mdp, f"{role}_labels")


def discount_notes(before: MDP, after: MDP) -> list[str]:
    """A caveat where the two worlds weigh the future differently."""
    if before.discount == after.discount:
        return []
    gammas = f"{before.discount:g} and {after.discount:g}"
    return [
        f"welfare and values are sums discounted by {gammas}: their change does not say whether agents are better off. "
        "Compare choices, or models with the same discount."
    ]


def lost_notes(before: MDP, after: MDP) -> list[str]:
    """Caveats where states end, or actions are missing, that do not in the world before: a table of transitions that
    lacks rows says so, meant or not."""
    now, then = (mdp.base or mdp for mdp in (before, after))
    if now.feasible.shape != then.feasible.shape:
        return []
    notes, rows = [], "without rows in a table of transitions is"
    ends = np.flatnonzero(then.terminal & ~now.terminal)
    lost = np.argwhere(now.feasible & ~then.feasible & ~then.terminal[:, None])
    if ends.size:
        which = in_short(label_array(then.state_labels, ends).tolist())
        which = f"state {which} is" if ends.size == 1 else f"states {which} are"
        notes.append(f"{which} terminal after the change, but not before (a state {rows} terminal).")
    if lost.size and then.action_labels is not None:
        which = f"{how_many(len(lost), 'state-action pair')} {'is' if len(lost) == 1 else 'are'}"
        first = pair_in_words(then, *map(int, lost[0]))
        notes.append(f"{which} infeasible after the change, but not before (first {first}; a pair {rows} infeasible).")
    return notes


def _require_declared_orders(mdp: MDP, own: MDP) -> None:
    """A model without labels knows positions, which need an order that was declared."""
    for role in AXES:
        labels, others = _labels(own, role), _labels(mdp, role)
        if labels is None or others is None:
            instead = label_it(role)
            require_declared("mdp", role, labels, "a model without labels", instead=instead)
            require_declared("mdp", role, others, "a fit without labels", where="its own data", instead=instead)


def estimated_side(fit: Any, initial: Any) -> Side:
    """The model of a fit as it was estimated: the full solution, whatever the method."""
    names = fit.reward_model.names  # as a tuple, which knows whether its order was declared
    setting = Setting(names if isinstance(names, tuple) else tuple(names), {})
    reward = lift_reward(fit.reward_model, fit.mdp)
    solver = fit.options.get("solver", "auto")
    start = starts_of(fit.mdp, initial, fit.demonstrations)
    return Side(fit.mdp, reward, setting, start.weights, start.words, fit.mdp.estimated, solver)


def _reward_of(fit: Any, mdp: MDP, reward: Any, setting: Setting) -> Reward | Floats:
    """The new reward, or the fit's own, on the new model."""
    if reward is None:
        _require_own_states(fit, mdp)
        return _fitting(fit.reward_model, mdp, _NEW_REWARD)
    if not hasattr(reward, "shape") and not isinstance(reward, list | tuple):
        require_reward(reward)
        if reward.n_params != fit.theta.size:
            expected = f"a reward of {fit.theta.size} parameters, those of the fit"
            raise InvalidReward("reward", expected, f"{reward.n_params}", remedy="Or pass numbers: an (S, A) array.")
        return _fitting(in_parameter_order(align_reward(reward, mdp), fit.reward_model.names), mdp, None)
    if setting.changed:
        remedy = "Pass one of them."
        raise InvalidOption.conflict("params", "cannot be combined with `reward` given as numbers", remedy=remedy)
    given = in_order(mdp, reward, "reward", error=InvalidReward)
    table = require_floats("reward", given, "a reward, or an (S, A) array of numbers", InvalidReward)
    lifts = mdp.base is not None and table.ndim > 0 and len(table) == mdp.base.n_states
    return whole_reward(mdp, labelled(mdp.lift(table) if lifts else table, mdp))


def _require_own_states(fit: Any, mdp: MDP) -> None:
    """A reward that is known by position goes to a model of the fit's own states and actions only."""
    if getattr(fit.reward_model, "state_labels", None) is not None or mdp is fit.mdp:
        return  # matched by label
    for role in AXES:
        here, there = _labels(fit.mdp, role), _labels(mdp, role)
        if not same_labels(here, there):
            known = set(map(spell, here))
            odd = next((label for label in there if spell(label) not in known), there[0])
            expected = f"the {role}s of the fit's model ({listed(here)})"
            raise InvalidInput("mdp", expected, f"others ({listed(there)})", f"{role} {odd!r}", _NEW_REWARD)


_NEW_REWARD = either(
    "Pass reward= as well: one that fits the new model.",
    "The new model must have the states and actions of the fit.",
)


def _fitting(reward: Reward, mdp: MDP, remedy: str | None) -> Reward:
    try:
        return lift_reward(align_reward(reward, mdp), mdp)
    except InvalidReward as problem:
        if remedy is None or problem.form != "value":
            raise
        raise InvalidInput("mdp", problem.expected, problem.got, problem.offender, remedy) from problem
