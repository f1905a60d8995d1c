"""Rewards in JAX: any function of parameters and features, and the multilayer network of the paper.

Everything runs in float64 inside `jax.enable_x64(True)`: the host program's JAX settings are never touched.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import (
    Bools,
    as_list,
    is_count,
    is_seed,
    require_flag,
    require_floats,
    require_number,
    require_option,
)
from revealed.errors import InvalidOption, InvalidReward
from revealed.gates import require_function, require_memory, require_room
from revealed.labels import find, in_parts_of
from revealed.mdp import Floats
from revealed.naming import rows_of
from revealed.positions import by_column, labelled
from revealed.rewards.base import as_cotangent, as_features, as_theta, check_names, sum_actions
from revealed.rewards.feature_table import in_given_order
from revealed.rewards.holes import Holes, find_holes, holes_at, holes_in, mask_holes, with_holes
from revealed.rewards.linear import aligned_rows, as_row_labels, labels_of_rows, refuse_row_labels
from revealed.rewards.units import STANDARDISED, Standard, as_columns, unit_notes
from revealed.voices import shown

if TYPE_CHECKING:
    import jax

ACTIVATIONS = ("relu", "tanh", "softplus", "sigmoid", "gelu", "silu", "elu")
SATURATING = ("tanh", "sigmoid")  # to whose start Glorot's variance suits; He's to the others
SPREAD = 0.5  # s.d. of the normal prior on each weight that a network's penalty stands for, unless one is set
MOST_L2 = 0.01  # of that penalty: with few decisions it would leave nothing of the network


class JaxReward:
    """A reward from a JAX function: `apply(params, features)` gives (S,), (S, 1) or (S, A).

    `params` is any pytree of arrays (dicts, lists, an Equinox module's arrays); it is also where estimation starts.
    `features` is whatever `apply` takes: an array, or a pytree of arrays. With `standardize=True` each column is scaled
    to mean 0 and standard deviation 1: `reward.standardized(features)` does the same elsewhere.

    Features may be NaN or infinite where nothing is chosen, at infeasible pairs and in terminal states, as long as the
    function treats each state or pair by itself: it gets zeros there, and the reward is NaN.
    """

    linear = False
    holes: Holes | None = None  # where features are not finite

    def __init__(
        self,
        apply: Callable[..., Any],
        params: Any,
        features: Any,
        names: Sequence[str] | None = None,
        standardize: bool = False,
    ) -> None:
        require_room("JAX", "jax")
        import jax
        from jax.flatten_util import ravel_pytree

        require_function("apply", apply, "a function of (params, features)")
        refuse_row_labels(features)
        leaves, inputs = _as_arrays("params", params), _as_arrays("features", features)
        if any(not leaf.size for leaf in jax.tree.leaves(inputs)):
            raise InvalidReward("features", "at least one row of numbers", "an empty array")
        with jax.enable_x64(True):
            flat, unravel = ravel_pytree(jax.tree.map(jax.numpy.asarray, leaves))
            self._units, self.notes = _units_of(inputs, standardize)
            scaled = self.standardized(inputs)
            self._start, self._features = np.asarray(flat), _filled(scaled, 0.0)

            def table(theta: jax.Array, features: Any) -> jax.Array:
                out = apply(unravel(theta), features)
                return out.reshape(out.shape[0], math.prod(out.shape[1:]))

            def pull(theta: jax.Array, features: Any, cotangent: jax.Array) -> jax.Array:
                _, backward = jax.vjp(lambda t: table(t, features), theta)
                return backward(cotangent)[0]

            self._table, self._pull = jax.jit(table), jax.jit(pull)
            try:
                self._rows, self._columns = jax.eval_shape(table, flat, self._features).shape
            except (TypeError, ValueError, LookupError, AttributeError) as error:
                got = f"a function that fails on them: {_first_line(error)}"
                raise InvalidReward(
                    "apply", "a function of (params, features) to (S,), (S, 1) or (S, A)", got
                ) from error
            if not self._rows * self._columns:
                got = f"one that gives shape {(self._rows, self._columns)}"
                raise InvalidReward("apply", "a function of (params, features) to rewards of at least one state", got)
            self._find_holes(scaled)
        self.unravel, self._recipe = unravel, (apply, params, features, names, standardize)
        self.names = check_names(names, self.n_params, default="weight")

    @property
    def n_params(self) -> int:
        return self._start.size

    def standardized(self, features: Any) -> Any:
        """The features as the function is given them: unchanged, unless `standardize=True`."""
        import jax

        if self._units is None:
            return features
        with jax.enable_x64(True):
            return jax.tree.map(lambda units, x: units(x), self._units, features)

    @property
    def n_columns(self) -> int:
        return self._columns

    @property
    def undefined(self) -> Bools | None:
        """(S, 1|A): where there is no reward, for want of finite features; None where there is one everywhere."""
        return self._gone

    def _find_holes(self, scaled: Any) -> None:
        """Where features are not finite, and whether the function leaves it at that."""
        import jax

        self._gone = None
        arrays = [np.asarray(x) for x in jax.tree.leaves(scaled)]
        if all(np.isfinite(x).all() for x in arrays):
            return
        theta = self._start + np.random.default_rng(0).normal(size=self._start.size)
        tables = [np.asarray(self._table(theta, _filled(scaled, x))) for x in (0.0, 1.0)]
        self._gone = holes_in(arrays, tables)
        self.holes = holes_at(self._gone, arrays)

    def init(self, seed: int | None = None) -> Floats:
        return self._start.copy()

    def value(self, theta: Floats) -> Floats:
        import jax

        with jax.enable_x64(True):
            table = np.asarray(self._table(as_theta(theta, self), self._features))
        return with_holes(table, self._gone)

    def vjp(self, theta: Floats, cotangent: Floats) -> Floats:
        import jax

        theta, cotangent = as_theta(theta, self), as_cotangent(cotangent, self._rows, self._columns)
        if self._columns == 1:
            cotangent = sum_actions(cotangent)[:, None]
        if self._gone is not None:
            cotangent = np.where(self._gone, 0.0, cotangent)
        with jax.enable_x64(True):
            return np.asarray(self._pull(theta, self._features, cotangent))

    def __reduce__(self) -> tuple[Any, ...]:
        return JaxReward, self._recipe  # compiled functions do not travel: made anew

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_params} weights)"


class NeuralReward(JaxReward):
    """A feed-forward network on features (S, K) of states or (S, A, K) of state-action pairs.

    Two hidden layers of 32 and 16 units with tanh by default (`hidden=16` is one layer); `activation` is one of relu,
    tanh, softplus, sigmoid, gelu, silu, elu. `seed` draws the start: zero biases, and normal weights with Glorot's
    variance for tanh and sigmoid, with He's for the others.

    Inputs are standardised: each feature has mean 0 and standard deviation 1 over the states or pairs, so that neither
    units nor offsets of features matter. `standardize=False` uses them as they are, and a pair (center, scale) sets
    these numbers; `center` and `scale` are the numbers used. `with_features` applies the same network to other
    features.

    The index of a data frame, or `state_labels`, names the states of the rows, which are then matched by label; so do
    `action_labels` for features of pairs. `columns` names the features, by default as a data frame does.

    Unless `l2` is set, weights are estimated with the penalty `usual_l2(n)` for n decisions: without one the likelihood
    of a network usually has no maximum, and weights diverge.
    """

    network = True  # its weights have no units
    left_out = ""  # what `aligned` had no use for, in a sentence

    def __init__(
        self,
        features: Any,
        hidden: Sequence[int] | int = (32, 16),
        seed: int = 0,
        activation: str = "tanh",
        standardize: Any = True,
        state_labels: Sequence[Any] | None = None,
        action_labels: Sequence[Any] | None = None,
        columns: Sequence[str] | None = None,
    ) -> None:
        require_room("JAX", "jax")
        import jax

        require_option("activation", activation, ACTIVATIONS)
        if not is_seed(seed):
            raise InvalidOption("seed", "a whole number >= 0", shown(seed))
        columns, state_labels = (
            list(given) if isinstance(given, Iterator) else given for given in (columns, state_labels)
        )
        features = in_given_order(features, columns, state_labels, called="columns")
        labels = labels_of_rows(features) if state_labels is None else state_labels
        X = as_features(features)
        named = list(features.columns) if columns is None and rows_of(features) is not None else columns
        self.columns = None if named is None else check_names(named, X.shape[-1], argument="columns")
        self.state_labels = None if labels is None else as_row_labels(labels, len(X))
        paired = action_labels is not None and X.ndim == 3
        self.action_labels = as_row_labels(action_labels, X.shape[1], "action") if paired else None
        layers: Any = [hidden] if is_count(hidden) else as_list(hidden)
        if layers is None or not all(is_count(n) for n in layers):
            raise InvalidReward("hidden", "layer sizes that are whole numbers, at least 1", shown(hidden))
        sizes = [X.shape[-1], *layers, 1]
        require_memory("hidden", hidden, 4 * sum(m * n for m, n in pairwise(map(int, sizes))), error=InvalidReward)
        self.activation, self.seed, self._sizes = activation, seed, sizes
        self.hidden: tuple[int, ...] = tuple(map(int, layers))
        bend = getattr(jax.nn, activation) if activation != "tanh" else jax.numpy.tanh

        def network(layers: list[tuple[Any, Any]], x: Any) -> Any:
            for weight, bias in layers[:-1]:
                x = bend(x @ weight + bias)
            weight, bias = layers[-1]
            return (x @ weight + bias)[..., 0]

        own = None if standardize is False else _standard(standardize, X)
        self.features, scaled = X, X if own is None else own(X)
        super().__init__(network, _draw_start(sizes, seed, activation), scaled)
        self.inputs = np.asarray(self._features)
        self.standardize: Any = False if own is None else (own.center, own.scale)
        if own is not None:
            self.notes = (STANDARDISED,)

    @property
    def center(self) -> Floats:
        """(K,): what is subtracted from each feature."""
        return np.zeros(self._sizes[0]) if self.standardize is False else self.standardize[0]

    @property
    def scale(self) -> Floats:
        """(K,): by what it is divided then."""
        return np.ones(self._sizes[0]) if self.standardize is False else self.standardize[1]

    @property
    def smooth(self) -> bool:
        """Whether its slope has no jumps, so that searches may trust it."""
        return self.activation != "relu"

    def usual_l2(self, decisions: float) -> float:
        """The penalty where none is set: a normal prior with s.d. ½ on each weight, l2 = 4/n, and at most 0.01."""
        n = require_number("decisions", decisions)
        return min(1.0 / (SPREAD**2 * n), MOST_L2) if n > 0.0 else MOST_L2

    def with_features(self, features: Any) -> NeuralReward:
        """The same network on other features (of another map, say): weights mean the same, since inputs are scaled by
        the numbers of this one. Columns of data frames are matched by name."""
        if self.columns is not None:
            features = by_column("features", features, self.columns, InvalidReward)
        X = as_features(features)
        if X.shape[-1] != self._sizes[0]:
            raise InvalidReward("features", f"{self._sizes[0]} columns, as the network takes", f"{X.shape[-1]}")
        labels = labels_of_rows(features)
        options = self.hidden, self.seed, self.activation, self.standardize
        return NeuralReward(X, *options, labels, columns=self.columns)

    def value(self, theta: Floats) -> Floats:
        """(S, 1) or (S, A): r at θ, which knows the labels of the rows where they have any."""
        return labelled(super().value(theta), self)

    def aligned(
        self, state_labels: Sequence[Any], action_labels: Sequence[Any] | None = None, feasible: Any = None
    ) -> NeuralReward:
        """The same network on the rows of these states, in this order, where rows have labels."""
        actions = self.action_labels if self.action_labels is None else tuple(action_labels or self.action_labels)
        if self.state_labels is None:
            return self
        if (self.state_labels, self.action_labels) == (tuple(in_parts_of(state_labels, self.state_labels)), actions):
            return self
        rows, left_out = aligned_rows(self.features, self.state_labels, state_labels, feasible)
        if self.action_labels is not None and actions is not None:
            rows = rows[:, find("action_labels", actions, self.action_labels, "action", InvalidReward)]
        options = self.hidden, self.seed, self.activation, self.standardize
        other = NeuralReward(rows, *options, state_labels, actions, self.columns)
        other.left_out = left_out
        return other

    def _find_holes(self, scaled: Any) -> None:
        """It looks at each state or pair by itself: a row that is not finite is a hole."""
        self.holes = find_holes(scaled.reshape(-1, scaled.shape[-1]))
        self._gone = mask_holes(self.holes, (len(scaled), self._columns))

    def __reduce__(self) -> tuple[Any, ...]:
        options = self.hidden, self.seed, self.activation, self.standardize
        return NeuralReward, (self.features, *options, self.state_labels, self.action_labels, self.columns)

    def init(self, seed: int | None = None) -> Floats:
        if not is_seed(seed):
            raise InvalidOption("seed", "None or a whole number >= 0", shown(seed))
        if seed is None or seed == self.seed:
            return super().init()
        drawn = _draw_start(self._sizes, seed, self.activation)
        return np.concatenate([part.reshape(-1) for layer in drawn for part in layer])

    def __repr__(self) -> str:
        inputs = "" if self.standardize is False else ", inputs standardised"
        return f"NeuralReward({'-'.join(map(str, self._sizes))}, {self.activation}, {self.n_params} weights{inputs})"


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _draw_start(sizes: Sequence[int], seed: int, activation: str) -> list[tuple[Floats, Floats]]:
    rng = np.random.default_rng(seed)
    if activation in SATURATING:
        return [(rng.normal(0.0, np.sqrt(2.0 / (m + n)), (m, n)), np.zeros(n)) for m, n in pairwise(sizes)]
    return [(rng.normal(0.0, np.sqrt(2.0 / m), (m, n)), np.zeros(n)) for m, n in pairwise(sizes)]


def _standard(asked: Any, X: Floats) -> Standard:
    return Standard.of(X) if asked is True else Standard.given(asked, X.shape[-1])


def _units_of(features: Any, standardize: Any) -> tuple[Any, tuple[str, ...]]:
    """How the columns of each array are scaled (None: not at all), and what to know of their units."""
    import jax

    require_flag("standardize", standardize)
    leaves = {jax.tree_util.keystr(path): x for path, x in jax.tree_util.tree_leaves_with_path(features)}
    if standardize:
        units = [Standard.of(as_columns(x)) for x in leaves.values()]
        return jax.tree.unflatten(jax.tree.structure(features), units), (STANDARDISED,)
    return None, unit_notes({f"features{name}": x for name, x in leaves.items()})


def _as_arrays(name: str, tree: Any) -> Any:
    """A pytree of arrays of numbers as float64."""
    import jax

    try:
        named = jax.tree_util.tree_leaves_with_path(tree)
    except (SystemError, RecursionError, ValueError) as error:  # a list within itself, keys without an order
        raise InvalidReward(name, "nested lists, tuples and dicts of arrays", shown(tree)) from error
    arrays = [
        require_floats(f"{name}{jax.tree_util.keystr(path)}", leaf, "an array of numbers", InvalidReward)
        for path, leaf in named
    ]
    return jax.tree.unflatten(jax.tree.structure(tree), arrays)


def _filled(tree: Any, value: float) -> Any:
    """The arrays with this number where they are not finite."""
    import jax

    def fill(x: Any) -> Any:
        array = np.asarray(x)
        finite = np.isfinite(array)
        return jax.numpy.asarray(array if finite.all() else np.where(finite, array, value))

    return jax.tree.map(fill, tree)
