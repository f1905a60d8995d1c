"""The model (theory M1): states, actions, sparse transitions, discount, start, feasible actions, terminal states.

An `MDP` is validated at the door and frozen after, so that everything behind it can trust it: rows sum to one, rows
of terminal states and infeasible pairs are empty, every other state has an action. The discount belongs to the MDP;
`replace(discount=...)` makes another. Finite horizons are not a second code path: `unroll` gives a larger MDP whose
states are (time, state) pairs (theory F1).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from revealed.checks import Bools, Floats, as_floats, as_list, as_number, is_count, pass_instead
from revealed.errors import InvalidDiscount, InvalidDistribution, InvalidInput, InvalidMask, InvalidTransitions
from revealed.transitions import CsrTransitions, EstimatedTransitions, Structure, as_csr

ROW_SUM_TOLERANCE = 1e-8


class MDP:
    """A Markov decision process without its reward.

    Parameters
    ----------
    transitions : scipy.sparse (S*A, S) with row s*A + a, or dense (S, A, S), or a list of A sparse (S, S).
        Rows of terminal states and of infeasible pairs are ignored; the others sum to one within 1e-8. What
        `rv.estimate_transitions` returns goes in as it is and is kept as `estimated`, for inference.
    discount : γ in [0, 1]. With γ = 1 values exist only where behaviour surely ends in a terminal state.
    initial : (S,) start probabilities, optional.
    feasible : (S, A) bool, optional: which actions a state offers.
    terminal : (S,) bool, optional. A terminal state has value 0: no action, no reward, no entropy.
    state_labels, action_labels : names, optional; labels of demonstrations are matched to them by name.
    """

    transitions: CsrTransitions
    discount: float
    initial: Floats | None
    feasible: Bools
    terminal: Bools
    state_labels: tuple[Any, ...] | None
    action_labels: tuple[Any, ...] | None
    estimated: EstimatedTransitions | None
    _original: dict[str, Any]
    base: MDP | None
    base_state: npt.NDArray[np.intp] | None

    def __init__(
        self,
        transitions: Any,
        discount: float = 0.95,
        initial: Any = None,
        feasible: Any = None,
        terminal: Any = None,
        state_labels: Sequence[Any] | None = None,
        action_labels: Sequence[Any] | None = None,
    ) -> None:
        estimated = transitions if isinstance(transitions, EstimatedTransitions) else None
        if estimated is not None:
            transitions = estimated.matrix
            state_labels = _own_labels("state_labels", state_labels, estimated.state_labels)
            action_labels = _own_labels("action_labels", action_labels, estimated.action_labels)
        matrix, n_states, n_actions = as_csr(transitions)
        terminal = _as_mask("terminal", terminal, (n_states,), default=False)
        offered = _as_mask("feasible", feasible, (n_states, n_actions), default=True)
        feasible = offered & ~terminal[:, None]
        _require_an_action(feasible, terminal)
        if estimated is not None and estimated.unseen is not None:
            _require_seen(estimated.unseen, feasible)
        original = matrix if feasible.all() else matrix.copy()
        matrix = _clean_rows(matrix, feasible, n_actions)
        self._set(
            estimated=estimated,
            _original={"transitions": original, "feasible": offered},  # before terminal states lost their rows
            transitions=CsrTransitions(matrix, n_states, n_actions),
            discount=_as_discount(discount),
            initial=None if initial is None else as_distribution("initial", initial, n_states),
            feasible=_frozen(feasible),
            terminal=_frozen(terminal),
            state_labels=_as_labels("state_labels", state_labels, n_states),
            action_labels=_as_labels("action_labels", action_labels, n_actions),
            base=None,
            base_state=None,
        )

    @classmethod
    def from_gymnasium(cls, env: Any, discount: float, masks: bool = True) -> MDP:
        """The model of a Gymnasium environment with a table `env.unwrapped.P`, such as FrozenLake or Taxi.

        States that only ended episodes lead to become terminal; where an outcome ends the episode in a state that goes
        on as well, it leads to one terminal state appended at the end. The start distribution and, unless
        `masks=False`, the action masks come along. Environments that are more than their table are refused.
        """
        from revealed.gymnasium_table import read_table

        return cls(**read_table(env, masks).model(), discount=discount)

    def _set(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    def __setstate__(self, fields: dict[str, Any]) -> None:
        """Copies and pickles are as frozen as the original."""
        self._set(**fields)
        matrix = self.transitions.matrix
        for array in (self.initial, self.feasible, self.terminal, self.base_state, matrix.data, matrix.indices):
            if array is not None:
                _frozen(array)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"an MDP is frozen; use mdp.replace({name}=...) to make another")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"an MDP is frozen: {name} cannot be deleted")

    def __repr__(self) -> str:
        extras = [f"{int(self.terminal.sum())} terminal"] if self.terminal.any() else []
        if self.base is not None:
            extras.append(f"horizon {self.horizon}")
        return (
            f"MDP({self.n_states} states, {self.n_actions} actions, {self.transitions.matrix.nnz} transitions, "
            f"discount {self.discount:g}" + "".join(f", {e}" for e in extras) + ")"
        )

    @property
    def n_states(self) -> int:
        return self.transitions.n_states

    @property
    def n_actions(self) -> int:
        return self.transitions.n_actions

    @property
    def horizon(self) -> int | None:
        """Decisions per trajectory of an unrolled MDP; None where time does not matter."""
        return None if self.base is None else self.n_states // self.base.n_states - 1

    @cached_property
    def structure(self) -> Structure:
        """What the graph of T tells a linear solver (cheap; computed once, kept by `replace(discount=...)`)."""
        return Structure.of(self.transitions.mix(self.feasible.astype(np.float64)))

    @cached_property
    def cannot_end(self) -> Bools:
        """(S,) bool: states from which no terminal state can be reached, whatever is done."""
        graph = self.transitions.mix(self.feasible.astype(np.float64))
        return ~can_reach(graph, self.terminal)

    @cached_property
    def log_feasible(self) -> Floats:
        """(S, A): 0 where an action is feasible, −∞ where not; added to Q before every log-sum-exp."""
        return np.where(self.feasible, 0.0, -np.inf)

    @cached_property
    def masked(self) -> bool:
        """Whether any pair is infeasible or any state terminal."""
        return not bool(self.feasible.all())

    def uniform_policy(self) -> Floats:
        """(S, A): every feasible action alike; zero rows in terminal states."""
        return self.feasible / np.maximum(self.feasible.sum(axis=1, keepdims=True), 1)

    def start(self, initial: Any = None) -> Floats:
        """(S,) where trajectories begin: `initial` if given, else the MDP's own start distribution, else evenly over
        the states that are not terminal (of the first layer, on a horizon)."""
        if initial is not None:
            return as_distribution("initial", initial, self.n_states)
        if self.initial is not None:
            return self.initial
        going = ~self.terminal
        if self.base is not None:
            going = going & (np.arange(self.n_states) < self.base.n_states)
        return going / going.sum()

    def replace(self, **changes: Any) -> MDP:
        """Another MDP with some of the constructor's arguments changed, as in `mdp.replace(discount=0.99)`."""
        known = ("transitions", "discount", "initial", "feasible", "terminal", "state_labels", "action_labels")
        for name in changes:
            if name not in known:
                raise InvalidInput("replace", f"arguments among {', '.join(known)}", name)
        if set(changes) <= {"discount"}:
            return self._with_discount(_as_discount(changes.get("discount", self.discount)))
        arguments: dict[str, Any] = {name: getattr(self, name) for name in known} | self._original | changes
        other = MDP(**arguments)
        if "transitions" not in changes:
            other._set(base=self.base, base_state=self.base_state, estimated=self.estimated)
        return other

    def _with_discount(self, discount: float) -> MDP:
        other = object.__new__(MDP)
        other._set(**self.__dict__ | {"discount": discount})
        if self.base is not None:
            other._set(base=self.base._with_discount(discount))
        return other

    def unroll(self, horizon: int) -> MDP:
        """The MDP of `horizon` decisions: state t·S + s at time t, (horizon + 1)·S states, last layer terminal.

        It carries `base` and `base_state`, through which rewards, features and demonstrations of the base MDP are
        lifted; the estimators do so by themselves.
        """
        if not is_count(horizon):
            raise InvalidInput("horizon", "a whole number of decisions, at least 1", repr(horizon))
        if self.base is not None:
            raise InvalidInput("unroll", "an MDP that is not unrolled yet", repr(self), remedy="Unroll `mdp.base`.")
        layers = int(horizon) + 1
        matrix = sp.csr_array(sp.kron(sp.eye_array(layers, k=1), self.transitions.matrix, format="csr"))
        _frozen(matrix.data)
        last = np.repeat(np.arange(layers) == horizon, self.n_states)
        terminal = np.tile(self.terminal, layers) | last
        initial = None if self.initial is None else np.concatenate([self.initial, np.zeros(horizon * self.n_states)])
        other = object.__new__(MDP)
        other._set(
            estimated=self.estimated,
            _original={"transitions": matrix, "feasible": np.tile(self.feasible, (layers, 1))},
            transitions=CsrTransitions(matrix, layers * self.n_states, self.n_actions),
            discount=self.discount,
            initial=None if initial is None else _frozen(initial),
            feasible=_frozen(np.tile(self.feasible, (layers, 1)) & ~terminal[:, None]),
            terminal=_frozen(terminal),
            state_labels=None,
            action_labels=self.action_labels,
            base=self,
            base_state=_frozen(np.tile(np.arange(self.n_states), layers)),
        )
        return other

    def lift(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Values per base state (first axis) as values per state of this unrolled MDP; of a plain MDP, as they are."""
        return values if self.base_state is None else values[self.base_state]


def require_mdp(value: Any, name: str = "mdp") -> None:
    if not isinstance(value, MDP):
        raise InvalidInput(name, "an rv.MDP", type(value).__name__, remedy=pass_instead(value, name))


def can_reach(graph: sp.csr_array, goal: Bools) -> Bools:
    """Which nodes have a path into `goal`."""
    return way_to(graph, goal)[0]


def way_to(graph: sp.csr_array, goal: Bools) -> tuple[Bools, npt.NDArray[np.intp]]:
    """Which nodes have a path into `goal`, and the next node on a shortest one (a node itself at or without a goal).

    One breadth-first search backwards from an extra node behind the goals.
    """
    from scipy.sparse.csgraph import breadth_first_order

    n = int(graph.shape[0])
    targets = np.flatnonzero(goal)
    moves = graph.tocoo()
    happens = moves.data != 0.0  # stored zeros are not moves
    rows = np.concatenate([moves.coords[1][happens], np.full(targets.size, n)])
    columns = np.concatenate([moves.coords[0][happens], targets])
    extended = sp.csr_array((np.ones(rows.size), (rows, columns)), shape=(n + 1, n + 1))
    order, parent = breadth_first_order(extended, n)
    reached = np.zeros(n + 1, dtype=bool)
    reached[order] = True
    onwards = np.arange(n)
    inner = reached[:n] & (parent[:n] >= 0) & (parent[:n] < n)
    onwards[inner] = parent[:n][inner]
    return reached[:n], onwards


def _clean_rows(matrix: sp.csr_array, feasible: Bools, n_actions: int) -> sp.csr_array:
    """Empty the ignored rows, check the others, and scale them to sum to one exactly."""
    keep = feasible.reshape(-1)
    in_use = np.repeat(keep, np.diff(matrix.indptr))
    matrix.data[~in_use] = 0.0
    matrix.eliminate_zeros()
    rows = np.repeat(np.arange(keep.size), np.diff(matrix.indptr))
    for wrong, what in ((~np.isfinite(matrix.data), "finite probabilities"), (matrix.data < 0, "probabilities >= 0")):
        if wrong.any():
            first = int(np.flatnonzero(wrong)[0])
            where = f"state {rows[first] // n_actions}, action {rows[first] % n_actions}"
            raise InvalidTransitions(
                "transitions", what, matrix.data[first], f"{where}, next state {matrix.indices[first]}"
            )
    sums = np.asarray(matrix.sum(axis=1)).reshape(-1)
    off = keep & (np.abs(sums - 1.0) > ROW_SUM_TOLERANCE)
    if off.any():
        first = int(np.flatnonzero(off)[0])
        raise InvalidTransitions(
            "transitions",
            "rows that sum to one within 1e-8",
            f"row sum {sums[first]:.10g}",
            f"state {first // n_actions}, action {first % n_actions}; {int(off.sum())} such rows",
            "Divide the rows by their sums (float32 and rounded numbers often need it)."
            if abs(sums[first] - 1.0) < 1e-4
            else "Normalise the row, or mark the pair infeasible (feasible=) or the state terminal (terminal=).",
        )
    matrix.data /= sums[rows]
    matrix.sort_indices()
    for array in (matrix.data, matrix.indices, matrix.indptr):
        array.flags.writeable = False
    return matrix


def _as_discount(discount: Any) -> float:
    gamma = as_number(discount)
    if not 0.0 <= gamma <= 1.0:
        raise InvalidDiscount("discount", "a number in [0, 1]", repr(discount), remedy="As in discount=0.95.")
    return gamma


def _as_mask(name: str, mask: Any, shape: tuple[int, ...], default: bool) -> Bools:
    if mask is None:
        return np.full(shape, default)
    array = as_floats(mask)
    if array is None:
        raise InvalidMask(name, f"a bool array of shape {shape}", f"{type(mask).__name__} of something else")
    if array.shape != shape:
        remedy = f"Indices go in as np.isin(np.arange({shape[0]}), indices)." if array.ndim == 1 else None
        raise InvalidMask(name, f"a bool array of shape {shape}", f"shape {array.shape}", remedy=remedy)
    other = ~np.isin(array, (0.0, 1.0))
    if other.any():
        raise InvalidMask(name, "True and False (or 1 and 0)", array[other][0], f"position {np.argwhere(other)[0]}")
    return array == 1.0


def _require_an_action(feasible: Bools, terminal: Bools) -> None:
    if terminal.all():
        raise InvalidMask("terminal", "at least one state that is not terminal", "all terminal")
    stuck = ~feasible.any(axis=1) & ~terminal
    if stuck.any():
        raise InvalidMask(
            "feasible",
            "at least one feasible action in every state that is not terminal",
            "no action",
            f"state {int(np.flatnonzero(stuck)[0])}; {int(stuck.sum())} such states",
            "Allow an action there, or mark the state terminal.",
        )


def as_distribution(name: str, values: Any, n: int) -> Floats:
    p = as_floats(values)
    if p is None:
        raise InvalidDistribution(name, f"{n} probabilities", f"{type(values).__name__} of something else")
    if p.shape != (n,):
        raise InvalidDistribution(name, f"an array of shape ({n},)", f"shape {p.shape}")
    bad = ~np.isfinite(p) | (p < 0)
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        raise InvalidDistribution(name, "finite probabilities >= 0", p[first], f"state {first}")
    if abs(p.sum() - 1.0) > ROW_SUM_TOLERANCE:
        raise InvalidDistribution(
            name, "probabilities that sum to one", f"sum {p.sum():.10g}", remedy="Divide by the sum."
        )
    return _frozen(p / p.sum())


def _require_seen(unseen: npt.NDArray[np.intp], feasible: Bools) -> None:
    """Transitions that were estimated know nothing of pairs that were never seen."""
    lost = unseen[feasible.reshape(-1)[unseen]]
    if lost.size:
        s, a = divmod(int(lost[0]), feasible.shape[1])
        raise InvalidTransitions(
            "transitions",
            "every feasible pair seen with its next state in the demonstrations",
            f"{lost.size} pairs that were not",
            f"state {s}, action {a}",
            'Mark them with feasible= or terminal=, let them stay where they are (unseen="stay"), or share outcomes '
            "between pairs (landing=). Where a last decision led comes from next_state=.",
        )


def _own_labels(name: str, given: Any, own: tuple[Any, ...] | None) -> Any:
    """Estimated transitions bring their labels along; others would put T in one order and the data in another."""
    if own is None or given is None or list(map(str, as_list(given) or ())) == list(map(str, own)):
        return own if given is None else given
    raise InvalidInput(name, "the labels of the demonstrations that the transitions come from", repr(given)[:60])


def _as_labels(name: str, labels: Sequence[Any] | None, n: int) -> tuple[Any, ...] | None:
    if labels is None:
        return None
    listed = as_list(labels)
    if listed is None or len(listed) != n:
        raise InvalidInput(name, f"a sequence of {n} labels", repr(labels) if listed is None else f"{len(listed)}")
    if not all(isinstance(x, Hashable) for x in listed):
        raise InvalidInput(name, "labels that are names or numbers", repr(listed[:3]))
    if len(set(listed)) != n:
        twice = next(x for i, x in enumerate(listed) if x in listed[:i])
        raise InvalidInput(name, "labels that differ", f"{twice!r} twice")
    return tuple(listed)


def _frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.flags.writeable = False
    return array
