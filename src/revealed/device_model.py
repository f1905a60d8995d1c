"""Where a model is placed, and the model there: padded transitions, masks and discount on one device or spread over
several (theory M1).

On a device states are the last axis of every array: values (S,), tables (A, S), right-hand sides (K, S). Several
devices share the states evenly; what is missing to a multiple of their number is filled up with terminal states, which
have value 0 and no weight. This file loads JAX: import it inside functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from revealed.checks import Floats, is_count, require_option
from revealed.device_solvers import DeviceChain, LayerChain
from revealed.errors import InvalidInput, InvalidOption, InvalidTransitions
from revealed.linear_solvers import make_solver
from revealed.transitions.layered import LayeredTransitions
from revealed.transitions.padded import PaddedTransitions
from revealed.voices import shown

KINDS = ("cpu", "gpu", "tpu")
DTYPES = ("float64", "float32")
CARDS = ("cuda", "rocm", "nvidia", "amd", "metal")  # what others call a GPU
SPLIT = (
    "XLA_FLAGS=--xla_force_host_platform_device_count=4, set before JAX is loaded, splits the CPU into four devices."
)


def devices_of(kind: str) -> list[Any]:
    """The devices of a kind; none where this machine has none."""
    try:
        return list(jax.devices(kind))
    except RuntimeError:  # JAX: no such backend
        return []


@dataclass(frozen=True)
class Placement:
    """A kind of device, how many of them, and the precision of inner iterations. It pickles: devices are looked up."""

    kind: str
    devices: int = 1
    dtype: str = "float64"

    @classmethod
    def of(cls, kind: Any, dtype: Any = "float64", devices: Any = None) -> Placement | None:
        """Checked against what this machine has; `devices=None` takes all of that kind, "host" is None."""
        there = {k: len(devices_of(k)) for k in KINDS}
        offered = [k for k, n in there.items() if n]
        if not isinstance(kind, str) or kind not in (*offered, "host"):
            expected = f"one of {', '.join(offered)}, host on this machine"
            raise InvalidOption("kind", expected, shown(kind), remedy=_instead_of(kind))
        require_option("dtype", dtype, DTYPES)
        if kind == "host":
            if devices is not None or dtype != "float64":
                given = "devices" if devices is not None else "dtype"
                raise InvalidOption.conflict(given, "requires a device: it has no effect on the host")
            return None
        if devices is not None and (not is_count(devices) or devices > there[kind]):
            expected = f"a whole number, 1 to {there[kind]} ({kind})"
            raise InvalidOption("devices", expected, shown(devices), remedy=SPLIT if kind == "cpu" else None)
        return cls(kind, there[kind] if devices is None else int(devices), dtype)

    def __str__(self) -> str:
        return self.kind if self.devices == 1 else f"{self.devices} × {self.kind}"

    @cached_property
    def where(self) -> list[Any]:
        """The JAX devices themselves."""
        found = devices_of(self.kind)
        if len(found) < self.devices:
            what = f"the model was placed on {self.devices} × {self.kind}, of which {len(found)} are available here"
            raise InvalidOption.impossible(what, argument="device")
        return found[: self.devices]

    @cached_property
    def sharding(self) -> Any:
        """How arrays are laid out: states spread over the devices; None where there is one."""
        if self.devices == 1:
            return None
        mesh = jax.sharding.Mesh(np.array(self.where), ("states",))
        return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("states"))

    def __getstate__(self) -> dict[str, Any]:
        return {"kind": self.kind, "devices": self.devices, "dtype": self.dtype}

    def put(self, x: Any) -> jax.Array:
        """An array (…, S) with its last axis spread over the devices."""
        with jax.enable_x64(True):
            if self.sharding is None:
                return jax.device_put(x, self.where[0])
            spec = jax.sharding.PartitionSpec(*[None] * (np.ndim(x) - 1), "states")
            return jax.device_put(x, jax.sharding.NamedSharding(self.sharding.mesh, spec))


def _instead_of(kind: Any) -> str | None:
    """The remedy for a kind of device that is not there."""
    word = kind.lower() if isinstance(kind, str) else ""
    if word in KINDS and kind in KINDS:
        cuda = 'pip install "jax[cuda12]", or what your driver needs: ' if kind == "gpu" else ""
        return (
            f"JAX sees no {kind.upper()} here. To install it: {cuda}https://docs.jax.dev/en/latest/installation.html."
        )
    if word.startswith(CARDS):
        return 'For a graphics card, use "gpu".'
    return f'Did you mean "{word}"?' if word in (*KINDS, "host") else None


def place(mdp: Any, kind: Any, devices: Any = None, dtype: Any = "float64") -> Any:
    """The same MDP on a device: `kind` is "gpu", "tpu", "cpu" (JAX on the CPU) or "host" (back to SciPy)."""
    base = None if mdp.base is None else place(mdp.base, kind, devices, dtype)
    return mdp._but("on_device", device=Placement.of(kind, dtype, devices), base=base)


@dataclass(frozen=True, eq=False)
class DeviceModel:
    """An MDP on its device. `gamma` is an array, so that models that differ in it share what was compiled.

    `mask` is (A, S), 0 where an action is feasible and −∞ where not; None where all are in every state that goes on.
    `going` is (S,): states that are not terminal and not padding. `mdp` is the host's model, where there is one.
    """

    placement: Placement
    n_states: int
    transitions: Any  # PaddedTransitions; LayeredTransitions where the model is a horizon on one device
    gamma: jax.Array
    mask: jax.Array | None
    going: jax.Array
    mdp: Any = None

    @classmethod
    def of(cls, mdp: Any) -> DeviceModel:
        """From a placed MDP."""
        there: Placement = mdp.device
        size = -(-mdp.n_states // there.devices) * there.devices
        with jax.enable_x64(True):
            transitions = _transitions(mdp, size)
            going = np.append(~mdp.terminal, np.zeros(size - mdp.n_states, dtype=bool))
            mask = None
            if not mdp.feasible[~mdp.terminal].all():
                allowed = np.zeros((mdp.n_actions, size), dtype=bool)
                allowed[:, : mdp.n_states] = mdp.feasible.T
                mask = there.put(np.where(allowed, 0.0, -np.inf).astype(np.float16))  # two bytes tell them apart
            gamma = jnp.asarray(mdp.discount, dtype=jnp.float64)
            return cls(there, mdp.n_states, transitions, gamma, mask, there.put(going), mdp)

    @classmethod
    def from_padded(
        cls,
        index: jax.Array,
        probabilities: jax.Array | None,
        discount: float,
        n_actions: int | None = None,
        terminal: Any = None,
        feasible: Any = None,
        placement: Placement | None = None,
    ) -> DeviceModel:
        """From arrays that are on the device already, for models that are made there (theory M1).

        Parameters
        ----------
        index, probabilities : (W, S) and (A, W, S) where the actions of a state share their successors; (A·B, S) each,
            and `n_actions`, where every action has its own B; (A, S) and None where every move is certain. A place
            with probability zero holds nothing. Rows are not checked to sum to one.
        terminal, feasible : (S,) and (A, S) bool, optional.
        """
        A = _actions(index, probabilities, n_actions)
        there = placement or Placement(index.devices().pop().platform, dtype="float64")
        with jax.enable_x64(True):
            S = index.shape[1]
            going = jnp.ones(S, dtype=bool) if terminal is None else ~jnp.asarray(terminal)
            mask = None if feasible is None else there.put(jnp.where(jnp.asarray(feasible) & going, 0.0, -jnp.inf))
            T = PaddedTransitions.from_tables(index, probabilities, A, there.put, there.sharding)
            return cls(there, S, T, jnp.asarray(discount, dtype=jnp.float64), mask, there.put(going))

    @property
    def n_actions(self) -> int:
        return self.transitions.n_actions

    @property
    def n_padded(self) -> int:
        """States and padding: the last axis of every array here."""
        return self.transitions.n_states

    @cached_property
    def discount(self) -> float:
        return float(self.gamma)

    @cached_property
    def ends(self) -> bool:
        """Whether any state is terminal; padding does not count."""
        return int(self.going.sum()) < self.n_states

    @property
    def endless(self) -> bool:
        """Whether γ < 1 and nothing ends."""
        return self.discount < 1.0 and not self.ends

    def put(self, array: Any) -> jax.Array:
        """An array of the library's layout, states first, as (…, S) on the device: (S, A) becomes (A, S)."""
        host = np.moveaxis(np.asarray(array), 0, -1)
        if host.shape[-1] != self.n_states:
            raise InvalidInput("array", f"first axis {self.n_states}", f"shape {np.shape(array)}")
        wide = np.zeros((*host.shape[:-1], self.n_padded), dtype=host.dtype)
        wide[..., : self.n_states] = host
        return self.placement.put(wide)

    def get(self, x: jax.Array) -> Floats:
        """The way back: NumPy, states first, without padding."""
        return np.ascontiguousarray(np.moveaxis(np.asarray(x)[..., : self.n_states], -1, 0))

    def chain(self, policy: jax.Array) -> DeviceChain | LayerChain:
        """The Markov chain of a policy (A, S), ready to solve with I − γT^π and its transpose."""
        if isinstance(self.transitions, LayeredTransitions):
            return LayerChain(self.transitions, self.gamma, policy)
        rescue = partial(_by_the_host, self, policy)
        how = self.placement.dtype, rescue, self.endless
        return DeviceChain(self.transitions, self.gamma, policy, self.going, *how)


def _transitions(mdp: Any, size: int) -> PaddedTransitions | LayeredTransitions:
    """A horizon on one device needs the base model's alone; several devices share its states as those of any model."""
    there: Placement = mdp.device
    if mdp.base is not None and there.devices == 1:
        return LayeredTransitions.of(mdp.base.on_device.transitions, mdp.n_states // mdp.base.n_states)
    return PaddedTransitions.from_csr(mdp.transitions.matrix, mdp.n_actions, size, there.put, there.sharding)


def _actions(index: jax.Array, p: jax.Array | None, n_actions: int | None) -> int:
    """A, from the shapes of a padded table."""
    fits = index.ndim == 2 and (p is None or p.shape[-2:] == index.shape)
    if not fits or str(index.dtype) != "int32":
        got = f"{index.shape} of {index.dtype} and {None if p is None else p.shape}"
        raise InvalidTransitions("index, probabilities", "int32 (W, S) and (A, W, S) or (W, S)", got)
    if p is None:
        return index.shape[0]
    if p.ndim == 3:
        return p.shape[0]
    if not is_count(n_actions) or index.shape[0] % int(n_actions or 1):
        raise InvalidInput("n_actions", f"a number that divides {index.shape[0]}", shown(n_actions))
    return int(n_actions or 1)


class _HostSolver:
    """`device_solvers.Rescue` by the host's LU."""

    def __init__(self, model: DeviceModel, policy: jax.Array) -> None:
        A = model.mdp.transitions.identity_minus(model.discount, model.get(policy))
        self._model, self._solver = model, make_solver(A, model.mdp.structure, "lu")

    def solve(self, b: jax.Array) -> jax.Array:
        return self._model.put(self._solver.solve(self._model.get(b)))

    def solve_transpose(self, b: jax.Array) -> jax.Array:
        return self._model.put(self._solver.solve_transpose(self._model.get(b)))


def _by_the_host(model: DeviceModel, policy: jax.Array) -> _HostSolver | None:
    """The host's LU where there is a host's model and its factors are cheap."""
    return _HostSolver(model, policy) if model.mdp is not None and model.mdp.structure.prefers_lu else None


class DeviceSolver:
    """`linear_solvers.LinearSolver` by a device: NumPy in and out, b (S,) or (S, K)."""

    def __init__(self, model: DeviceModel, policy: Floats) -> None:
        self._model, self._chain = model, model.chain(model.put(policy))

    def solve(self, b: Floats) -> Floats:
        return self._model.get(self._chain.solve(self._model.put(b)))

    def solve_transpose(self, b: Floats) -> Floats:
        return self._model.get(self._chain.solve_transpose(self._model.put(b)))
