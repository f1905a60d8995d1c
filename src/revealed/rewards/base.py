"""The protocol of a reward, and how a reward of a base MDP is lifted to its unrolled horizon.

A reward is a differentiable map from θ (K,) to a table (S, 1) or (S, A). The objective needs two things of it: its
value, and the product of a cotangent with its Jacobian (theory G4). Anything with these methods is a reward.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from revealed.checks import Bools, require_floats, require_vector
from revealed.errors import InvalidReward
from revealed.gates import floats_of, require_memory
from revealed.labels import is_derived, listed, locate, require_declared, sequence_of, spell
from revealed.mdp import MDP, Floats
from revealed.naming import are_row_numbers
from revealed.positions import by_parameter
from revealed.rewards.holes import require_defined, undefined
from revealed.sparse_input import is_sparse
from revealed.voices import arg, shown


@runtime_checkable
class Reward(Protocol):
    """`n_params` = K, `names` of the parameters, a start `init(seed)`, the table `value(theta)` and its `vjp`."""

    @property
    def n_params(self) -> int: ...
    @property
    def names(self) -> Sequence[str]: ...
    def init(self, seed: int | None = None) -> Floats: ...
    def value(self, theta: Floats) -> Floats: ...
    def vjp(self, theta: Floats, cotangent: Floats) -> Floats: ...


def sum_actions(cotangent: Floats) -> Floats:
    """Σ_a of an (S, A) table; a product with ones is several times faster than a sum over short rows."""
    return cotangent @ np.ones(cotangent.shape[1])


def as_theta(theta: Any, reward: Reward) -> Floats:
    """Parameters as a user gives them: a number each, in a dict or Series by name."""
    if type(theta) is not np.ndarray:
        theta = by_parameter("theta", theta, reward.names, InvalidReward)
    return floats_of("theta", theta, (reward.n_params,), error=InvalidReward)


def as_cotangent(cotangent: Any, n_states: int, n_columns: int) -> Floats:
    """Derivatives by the table of the reward: (S, A); any number of actions where the reward is the same for all."""
    return floats_of("cotangent", cotangent, (n_states, None if n_columns == 1 else n_columns), error=InvalidReward)


def is_linear(reward: Reward) -> bool:
    """Whether r is linear in θ with a Jacobian at hand, so that second derivatives are exact (theory H1)."""
    return bool(getattr(reward, "linear", False)) and hasattr(reward, "jacobian")


class LiftedReward:
    """A reward of the base MDP as a reward of the unrolled one: the same table at every time, in the order in memory of
    `layers.py`, where numbers of one action stand side by side."""

    def __init__(self, reward: Reward, index: npt.NDArray[np.intp], n_base: int) -> None:
        self.base = reward
        self._index, self._n_base, self._layers = index, n_base, index.size // n_base

    @property
    def n_params(self) -> int:
        return self.base.n_params

    @property
    def names(self) -> Sequence[str]:
        return self.base.names

    @property
    def linear(self) -> bool:
        return bool(getattr(self.base, "linear", False))

    @property
    def tabular(self) -> bool:
        return bool(getattr(self.base, "tabular", False))

    @property
    def smooth(self) -> bool:
        return bool(getattr(self.base, "smooth", True))

    @property
    def network(self) -> bool:
        return bool(getattr(self.base, "network", False))

    @property
    def undefined(self) -> Bools | None:
        """(S, 1|A): where it has no value; None where it has one everywhere."""
        holes = undefined(self.base)
        return None if holes is None else holes[self._index]

    def init(self, seed: int | None = None) -> Floats:
        return self.base.init(seed)

    def value(self, theta: Floats) -> Floats:
        return np.tile(np.asarray(self.base.value(theta)).T, self._layers).T

    def vjp(self, theta: Floats, cotangent: Floats) -> Floats:
        layered = cotangent.T.reshape(cotangent.shape[1], self._layers, self._n_base)
        return self.base.vjp(theta, np.add.reduce(layered, axis=1).T)


class LiftedWithJacobian(LiftedReward):
    """The same for a reward that has a Jacobian."""

    def jacobian(self, theta: Floats) -> Any:
        J = self.base.jacobian(theta)  # pyright: ignore[reportAttributeAccessIssue]
        per_state = J.shape[0] // self._n_base
        rows = (self._index[:, None] * per_state + np.arange(per_state)).reshape(-1)
        return J[rows]


def reward_table(reward: Reward, theta: Floats, mdp: MDP) -> Floats:
    """(S, A): r at θ of a reward that fits the model (theory V1), for every pair: also for those that the model does
    not offer and for terminal states, since another model may offer them. NaN where the reward has no value."""
    return np.array(np.broadcast_to(np.asarray(reward.value(theta), dtype=np.float64), mdp.feasible.shape))


def in_parameter_order(reward: Any, names: Sequence[str]) -> Any:
    """A reward that is to take the parameters of these names, matched by name; where either side only counts its
    parameters (theta0, theta1, …) they are matched by position."""
    own, wanted = [spell(name) for name in reward.names], [spell(name) for name in names]
    if own == wanted or _only_count(own) or _only_count(wanted):
        return reward
    order = locate(wanted, own)
    if (order < 0).any():
        odd = wanted[int(np.argmin(order))]
        got, remedy = (
            f"a reward of {listed(own)}",
            "Name its parameters as those of the fit, if they are the same: names=[...].",
        )
        raise InvalidReward(
            "reward", f"the parameters of the fit ({listed(wanted)})", got, f"no parameter {odd!r}", remedy
        )
    if hasattr(reward, "_with_order"):
        return reward._with_order(order)
    rule = f"must have its parameters in the order of the fit ({listed(wanted)}), not {listed(own)}"
    raise InvalidReward.conflict("reward", rule)


def _only_count(names: Sequence[str]) -> bool:
    """Whether the names are one word and 0, 1, 2, …, as where nobody named the parameters."""
    word = names[0].removesuffix("0")
    return all(name == f"{word}{k}" for k, name in enumerate(names))


def plain(reward: Any) -> Any:
    """The reward of the base MDP behind one that was lifted to a horizon; any other as it is."""
    return reward.base if isinstance(reward, LiftedReward) else reward


def require_reward(reward: Any) -> None:
    """The protocol's methods are there, and it is an object, not a class."""
    if isinstance(reward, type) or not isinstance(reward, Reward):
        needed = "n_params, names, init, value, vjp"
        got = f"the class {reward.__name__}" if isinstance(reward, type) else type(reward).__name__
        remedy = "Wrap features as rv.LinearReward(features)." if hasattr(reward, "shape") else None
        if callable(reward) and hasattr(reward, "__self__"):
            remedy = f"It is a method: call it, as in {reward.__name__}()."
        if hasattr(reward, "transitions") and not isinstance(reward, type):
            remedy = "The MDP is an argument of fit(mdp, demonstrations)."
        expected = f"a reward, as rv.LinearReward(features), or an object with {needed}"
        raise InvalidReward("reward", expected, got, remedy=remedy)


def has_features(reward: Any) -> bool:
    """Whether a reward is linear in features that can be written down: not one weight per state, of which S×S would."""
    return is_linear(reward) and not getattr(reward, "tabular", False)


def of_trips(reward: Any) -> bool:
    """Whether every trip has rewards of its own: `reward.toward(goal, origin)` is the plain reward of one."""
    return hasattr(reward, "toward")


def cases_by(reward: Any) -> str:
    """What rewards depend on where trips have goals: "goal", or "pair" for those that look at the origin, too."""
    return getattr(reward, "by", "goal")


def align_reward(reward: Any, mdp: MDP) -> Any:
    """A reward whose features carry labels, in the order of the model's; labels of a model without any are 0, 1, 2, …
    One that has no labels is by position, which needs an order that was declared.

    On a horizon features may be those of the states, which is usual, or of (time, state) pairs.
    """
    if hasattr(reward, "require_model"):  # known by its network
        reward.require_model(mdp)
        return reward
    reward = _with_row_numbers(reward, mdp.base or mdp)
    own = getattr(reward, "state_labels", None)
    if own is None or not hasattr(reward, "aligned"):
        _require_positions(reward, mdp.base or mdp, ("state", "action"))
        return reward
    timed = mdp.base is not None and spell((mdp.state_labels or ("",))[0]) in set(map(spell, own))
    model = mdp if timed else mdp.base or mdp
    states = range(model.n_states) if model.state_labels is None else model.state_labels
    if getattr(reward, "leads", None) is not None and model.action_labels is None and model.certain:
        return reward.along(states, model.targets, model.feasible)
    if getattr(reward, "action_labels", None) is None:
        _require_positions(reward, model, ("action",))
    actions = range(model.n_actions) if model.action_labels is None else model.action_labels
    return reward.aligned(states, actions, model.feasible)


def _with_row_numbers(reward: Any, model: MDP) -> Any:
    """Rows of a frame whose index is 0, 1, 2, … are states by these labels, where the model's are such numbers."""
    labels = model.state_labels
    if labels is None or not getattr(reward, "counted", False) or are_row_numbers(range(reward.n_states), labels):
        return reward
    other = copy(reward)
    other.state_labels = tuple(range(reward.n_states))
    return other


def _require_positions(reward: Any, model: MDP, roles: Sequence[str]) -> None:
    """Rewards by position, where that means something; one weight per state is named by the state's own label."""
    derived = [role for role in roles if is_derived(getattr(model, f"{role}_labels"))]
    if not derived or getattr(reward, "by_label", False):
        return
    sizes: dict[str, int] = dict(zip(("state", "action"), np.shape(reward.value(reward.init())), strict=False))
    for role in derived:
        if sizes.get(role, 1) > 1:
            labels = getattr(model, f"{role}_labels")
            require_declared("reward", role, labels, "a reward without labels", InvalidReward)


def lift_reward(reward: Reward, mdp: MDP) -> Reward:
    """The reward itself if it fits `mdp`; its lift if it fits the base of an unrolled `mdp`; else an error.

    The fit is judged from the table at the reward's own start, whose shape says everything. Features that are not
    finite are an error where something can be chosen.
    """
    start = start_of(reward)
    shape = _shape_of(reward.value(start))
    if shape in ((mdp.n_states, 1), (mdp.n_states, mdp.n_actions)):
        _require_vjp(reward, start, mdp.n_states, mdp.n_actions)
        require_defined(reward, mdp)
        return reward
    base = mdp.base
    if (
        base is not None
        and mdp.base_state is not None
        and shape in ((base.n_states, 1), (base.n_states, mdp.n_actions))
    ):
        require_defined(reward, base)
        lifted = LiftedWithJacobian if hasattr(reward, "jacobian") else LiftedReward
        return lifted(reward, mdp.base_state, base.n_states)
    raise _misfit(reward, shape, mdp.n_states, mdp.n_actions)


def _misfit(reward: Any, table: tuple[int, ...], n_states: int, n_actions: int) -> InvalidReward:
    """The complaint about a reward of other states or actions: as the user knows it, by its features if it has any."""
    fitting = "for the states and actions of the MDP"
    given = _feature_shape(reward)
    if given is None:
        expected = f"a table of shape ({n_states}, 1) or ({n_states}, {n_actions}), {fitting}"
        return InvalidReward("reward", expected, f"shape {table}")
    remedy = "Check the first axes of the features."
    if given[:-1] == (n_states * n_actions,):
        remedy = f"If rows are pairs, state by state: features.reshape({n_states}, {n_actions}, {given[-1]})."
        if is_sparse(getattr(reward, "matrix", None)):
            remedy = f"If rows are pairs, state by state: {arg('n_actions', n_actions)}."
    expected = f"features of shape ({n_states}, K) or ({n_states}, {n_actions}, K), {fitting}"
    return InvalidReward("reward", expected, f"shape {given}", remedy=remedy)


def _feature_shape(reward: Any) -> tuple[int, ...] | None:
    """The shape of the features of a reward, with an axis for states, perhaps one for actions, and one for columns."""
    matrix = getattr(reward, "matrix", None)
    if matrix is None:
        return getattr(getattr(reward, "features", None), "shape", None)
    rows = (reward.n_states,) if reward.n_columns == 1 else (reward.n_states, reward.n_columns)
    return (*rows, int(matrix.shape[1]))


def start_of(reward: Reward) -> Floats:
    """The reward's own start (K,), checked."""
    expected = f"{reward.n_params} finite numbers, one per parameter"
    return require_vector("reward.init", reward.init(), reward.n_params, expected, InvalidReward)


def _shape_of(table: Any) -> tuple[int, ...]:
    """The shape of a table of numbers; it may lie on a device, from which it is not fetched."""
    kind = getattr(getattr(table, "dtype", None), "kind", "")
    if kind in ("i", "u", "f") and not isinstance(table, np.ma.MaskedArray):
        return np.shape(table)
    return require_floats("reward.value", table, "an (S, 1) or (S, A) array of numbers", InvalidReward).shape


def _require_vjp(reward: Reward, start: Floats, n_states: int, n_actions: int) -> None:
    """A vjp of the wrong shape, or of NaN at pairs that nobody is offered, would surface deep in a search: ask once."""
    expected = f"{reward.n_params} numbers, one per parameter"
    given = reward.vjp(start, np.zeros((n_states, n_actions)))
    pulled = require_floats("reward.vjp", given, expected, InvalidReward)
    if pulled.shape != (reward.n_params,):
        got = f"shape {pulled.shape}"
        raise InvalidReward("reward.vjp", f"shape ({reward.n_params},), one number per parameter", got)
    if not np.isfinite(pulled).all():
        remedy = "Put zeros where features are NaN, at infeasible pairs and in terminal states."
        raise InvalidReward(
            "reward.vjp", "zeros for a cotangent of zeros", pulled[~np.isfinite(pulled)][0], None, remedy
        )


def as_features(features: Any, name: str = "features") -> Floats:
    """Dense features (S, K) or (S, A, K) as float64; they may be NaN where nothing is chosen."""
    array = require_floats(name, features, "numbers of shape (S, K) or (S, A, K)", InvalidReward)
    _refuse_blocks(features, name)
    if array.ndim not in (2, 3) or 0 in array.shape:
        raise InvalidReward(name, "shape (S, K) or (S, A, K)", f"shape {array.shape}")
    return array


def _refuse_blocks(features: Any, name: str) -> None:
    """A list of tables may hold one per action or one per state."""
    if isinstance(features, list | tuple) and any(getattr(block, "ndim", 0) == 2 for block in features):
        if any(hasattr(block, "columns") for block in features):
            remedy = "Pass one table of all pairs to rv.LinearReward.from_frame(table, state, action)."
            raise InvalidReward(name, "one table or array", "a list of data frames", remedy=remedy)
        got = (
            f"a list of {len(features)} matrices, which may be one (S, K) for each action or one (A, K) for each state"
        )
        remedy = "Pass np.stack(matrices, axis=1) for one per action, or np.stack(matrices) for one per state."
        raise InvalidReward(name, "one array", got, remedy=remedy)


def check_names(
    names: Sequence[str] | None, k: int, default: str = "theta", argument: str = "names"
) -> tuple[str, ...]:
    require_memory("features", f"{k} features", 16 * k, InvalidReward)
    if names is None:
        return tuple(f"{default}{i}" for i in range(k))
    given = sequence_of(names) or []
    listed = [spell(name) for name in given if not getattr(name, "shape", ())]  # arrays name nothing
    if len(listed) != k or len(set(listed)) != k or len(given) != k:
        raise InvalidReward(argument, f"a sequence of {k} distinct names", shown(names))
    return tuple(listed)
