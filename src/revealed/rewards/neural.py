"""Rewards in JAX: any function of parameters and features, and the multilayer network of the paper.

Everything runs in float64 inside `jax.enable_x64(True)`: the host program's JAX settings are never touched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import as_list, is_count, is_seed, require_option
from revealed.errors import InvalidOption, InvalidReward
from revealed.mdp import Floats
from revealed.rewards.base import check_features, check_names, sum_actions

if TYPE_CHECKING:
    import jax

ACTIVATIONS = ("relu", "tanh", "softplus", "sigmoid", "gelu", "silu", "elu")


class JaxReward:
    """A reward from a JAX function: `apply(params, features)` gives (S,), (S, 1) or (S, A).

    `params` is any pytree of arrays (dicts, lists, an Equinox module's arrays); it is also where estimation starts.
    `features` is whatever `apply` takes: an array, or a pytree of arrays.
    """

    linear = False

    def __init__(
        self, apply: Callable[..., Any], params: Any, features: Any, names: Sequence[str] | None = None
    ) -> None:
        import jax
        from jax.flatten_util import ravel_pytree

        with jax.enable_x64(True):
            try:
                as_double = jax.tree.map(lambda x: jax.numpy.asarray(x, dtype=jax.numpy.float64), (params, features))
            except (TypeError, ValueError) as error:
                raise InvalidReward("params, features", "pytrees of arrays of numbers", str(error)) from error
            flat, unravel = ravel_pytree(as_double[0])
            self._start, self._features = np.asarray(flat), as_double[1]

            def table(theta: jax.Array, features: Any) -> jax.Array:
                out = apply(unravel(theta), features)
                return out.reshape(out.shape[0], -1)

            def pull(theta: jax.Array, features: Any, cotangent: jax.Array) -> jax.Array:
                _, backward = jax.vjp(lambda t: table(t, features), theta)
                return backward(cotangent)[0]

            self._table, self._pull = jax.jit(table), jax.jit(pull)
            try:
                self._columns = jax.eval_shape(table, flat, self._features).shape[1]
            except (TypeError, ValueError, IndexError) as error:
                got = f"a function that fails on them: {str(error).splitlines()[0]}"
                raise InvalidReward(
                    "apply", "a function of (params, features) to (S,), (S, 1) or (S, A)", got
                ) from error
        self.unravel, self._recipe = unravel, (apply, params, features, names)
        self.names = check_names(names, self.n_params, default="weight")

    @property
    def n_params(self) -> int:
        return self._start.size

    def init(self, seed: int | None = None) -> Floats:
        return self._start.copy()

    def value(self, theta: Floats) -> Floats:
        import jax

        with jax.enable_x64(True):
            return np.asarray(self._table(theta, self._features))

    def vjp(self, theta: Floats, cotangent: Floats) -> Floats:
        import jax

        if self._columns == 1:
            cotangent = sum_actions(cotangent)[:, None]
        with jax.enable_x64(True):
            return np.asarray(self._pull(theta, self._features, cotangent))

    def __reduce__(self) -> tuple[Any, ...]:
        return JaxReward, self._recipe  # compiled functions do not travel: made anew

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_params} weights)"


class NeuralReward(JaxReward):
    """A feed-forward network on features (S, K) of states or (S, A, K) of state-action pairs.

    Two hidden layers of 32 and 16 units with ReLU by default, as in the paper; `activation` is one of relu, tanh,
    softplus, sigmoid, gelu, silu, elu. `seed` draws the start (He's normal weights, zero biases).
    """

    def __init__(
        self, features: Any, hidden: Sequence[int] = (32, 16), seed: int = 0, activation: str = "relu"
    ) -> None:
        import jax

        require_option("activation", activation, ACTIVATIONS)
        if not is_seed(seed):
            raise InvalidOption("seed", "a whole number >= 0", repr(seed))
        X = check_features(features)
        layers = as_list(hidden)
        if layers is None or not all(is_count(n) for n in layers):
            raise InvalidReward("hidden", "layer sizes that are whole numbers, at least 1", repr(hidden))
        sizes = [X.shape[-1], *layers, 1]
        self.hidden, self.activation, self.seed, self._sizes = tuple(layers), activation, seed, sizes
        bend = getattr(jax.nn, activation) if activation != "tanh" else jax.numpy.tanh

        def network(layers: list[tuple[Any, Any]], x: Any) -> Any:
            for weight, bias in layers[:-1]:
                x = bend(x @ weight + bias)
            weight, bias = layers[-1]
            return (x @ weight + bias)[..., 0]

        super().__init__(network, _he_start(sizes, seed), X)
        self.features = X

    def __reduce__(self) -> tuple[Any, ...]:
        return NeuralReward, (self.features, self.hidden, self.seed, self.activation)

    def init(self, seed: int | None = None) -> Floats:
        if seed is None or seed == self.seed:
            return super().init()
        return np.concatenate([part.reshape(-1) for layer in _he_start(self._sizes, seed) for part in layer])

    def __repr__(self) -> str:
        return f"NeuralReward({'-'.join(map(str, self._sizes))}, {self.activation}, {self.n_params} weights)"


def _he_start(sizes: Sequence[int], seed: int) -> list[tuple[Floats, Floats]]:
    rng = np.random.default_rng(seed)
    return [(rng.normal(0.0, np.sqrt(2.0 / m), (m, n)), np.zeros(n)) for m, n in pairwise(sizes)]
