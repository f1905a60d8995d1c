"""Rewards in PyTorch: any `nn.Module` (optional extra `revealed[torch]`)."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from revealed.checks import Bools, require_flag, require_floats
from revealed.errors import InvalidReward, MissingDependency
from revealed.gates import require_room
from revealed.mdp import Floats
from revealed.rewards.base import as_cotangent, as_theta, sum_actions
from revealed.rewards.holes import Holes, holes_at, holes_in, with_holes
from revealed.rewards.linear import refuse_row_labels
from revealed.rewards.units import STANDARDISED, Standard, unit_notes

MANY_ROWS = 50_000  # inputs from which a module gains by threads more than they take to wake up


def _torch() -> Any:
    """PyTorch, loaded by name: an `import torch` in a file called torch.py would puzzle type checkers."""
    require_room("PyTorch", "torch")
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise MissingDependency("TorchReward needs PyTorch: pip install torch") from error


@contextmanager
def _few_threads(torch: Any, rows: int) -> Iterator[None]:
    """PyTorch on one thread, and afterwards on as many as before: a search calls a small module thousands of times, and
    each time its threads would wake, fight with ours for the cores, and sleep."""
    before = torch.get_num_threads()
    if before == 1 or rows >= MANY_ROWS:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class TorchReward:
    """A reward from a module: `module(features)` gives (S,), (S, 1), (S, A), or (S, A, 1).

    The module is copied in float64 and evaluation mode; the original is not changed. Estimation starts at its
    parameters. `module_at(theta)` gives a copy that carries fitted parameters. With `standardize=True` the module is
    given each feature with mean 0 and standard deviation 1; the copies of `module_at` then do that by themselves, on
    raw features.

    Features may be NaN or infinite where nothing is chosen, at infeasible pairs and in terminal states, as long as the
    module treats each state or pair by itself: it gets zeros there, and the reward is NaN.
    """

    linear = False
    holes: Holes | None = None  # where features are not finite

    def __init__(self, module: Any, features: Any, standardize: bool = False) -> None:
        torch = _torch()
        if not isinstance(module, torch.nn.Module):
            raise InvalidReward("module", "a torch.nn.Module", type(module).__name__)
        require_flag("standardize", standardize)
        refuse_row_labels(features)
        self._module = copy.deepcopy(module).to(torch.float64).eval()
        array = require_floats("features", features, "an array of numbers", InvalidReward)
        if not array.size:
            raise InvalidReward("features", "at least one row of numbers", f"shape {array.shape}")
        if standardize and array.ndim < 2:
            raise InvalidReward("features", "(S, K) or (S, A, K) where inputs are standardised", f"shape {array.shape}")
        self._units = Standard.of(array) if standardize else None
        self.notes = (STANDARDISED,) if standardize else unit_notes({"features": array})
        scaled = array if self._units is None else self._units(array)
        self._features, self._gone = _filled(torch, scaled, 0.0), None
        self._shapes = {name: tuple(p.shape) for name, p in self._module.named_parameters()}
        if not self._shapes:
            raise InvalidReward("module", "a module with parameters", "none")
        with torch.no_grad():
            start = [p.detach().reshape(-1) for p in self._module.parameters()]
            self._start = torch.cat(start).numpy().copy()
        try:
            self._columns = self.value(self._start).shape[1]
        except (RuntimeError, IndexError, TypeError) as error:
            got = f"features of shape {tuple(array.shape)}, which it refuses: {error}"
            raise InvalidReward("module", "a module that takes the features", got) from error
        if not np.isfinite(scaled).all():
            self._find_holes(torch, scaled)

    @property
    def n_params(self) -> int:
        return self._start.size

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{n}[{i}]" for n, shape in self._shapes.items() for i in range(int(np.prod(shape))))

    @property
    def n_columns(self) -> int:
        return self._columns

    @property
    def undefined(self) -> Bools | None:
        """(S, 1|A): where there is no reward, for want of finite features; None where there is one everywhere."""
        return self._gone

    def _find_holes(self, torch: Any, scaled: Floats) -> None:
        """Where features are not finite, and whether the module leaves it at that."""
        theta, zeros = self._start + np.random.default_rng(0).normal(size=self._start.size), self._features
        tables = [self.value(theta)]
        self._features = _filled(torch, scaled, 1.0)
        tables.append(self.value(theta))
        self._features, self._gone = zeros, holes_in([scaled], tables)
        self.holes = holes_at(self._gone, [scaled])

    def init(self, seed: int | None = None) -> Floats:
        return self._start.copy()

    def value(self, theta: Floats) -> Floats:
        torch = _torch()
        with _few_threads(torch, self._rows), torch.no_grad():
            table = self._table(torch.tensor(as_theta(theta, self))).numpy()
        return with_holes(table, self._gone)

    def vjp(self, theta: Floats, cotangent: Floats) -> Floats:
        torch = _torch()
        theta = as_theta(theta, self)
        cotangent = as_cotangent(cotangent, self._features.shape[0], self._columns)
        if self._columns == 1:
            cotangent = sum_actions(cotangent)[:, None]
        if self._gone is not None:
            cotangent = np.where(self._gone, 0.0, cotangent)
        with _few_threads(torch, self._rows), torch.enable_grad():
            leaf = torch.tensor(theta, requires_grad=True)
            (gradient,) = torch.autograd.grad(self._table(leaf), leaf, torch.tensor(cotangent))
        return gradient.numpy()

    @property
    def _rows(self) -> int:
        """How many inputs the module is given at once."""
        return int(np.prod(self._features.shape[:-1]))

    def module_at(self, theta: Floats) -> Any:
        """A copy of the module with the parameters `theta`, for use elsewhere; it takes the features as they were given
        here, whether or not inputs are standardised."""
        torch = _torch()
        module = copy.deepcopy(self._module)
        with torch.no_grad():
            for name, part in self._split(torch.tensor(as_theta(theta, self))).items():
                module.get_parameter(name).copy_(part)
        return module if self._units is None else _standardising(torch, self._units, module)

    def _split(self, theta: Any) -> dict[str, Any]:
        sizes = [int(np.prod(shape)) for shape in self._shapes.values()]
        parts = theta.split(sizes)
        return {n: p.reshape(shape) for (n, shape), p in zip(self._shapes.items(), parts, strict=True)}

    def _table(self, theta: Any) -> Any:
        torch = _torch()
        out = torch.func.functional_call(self._module, self._split(theta), (self._features,))
        return out.reshape(out.shape[0], -1)

    def __repr__(self) -> str:
        inputs = "" if self._units is None else ", inputs standardised"
        return f"TorchReward({type(self._module).__name__}, {self.n_params} weights{inputs})"


def _filled(torch: Any, array: Floats, value: float) -> Any:
    """The array with this number where it is not finite."""
    finite = np.isfinite(array)
    return torch.as_tensor(array if finite.all() else np.where(finite, array, value))


def _standardising(torch: Any, units: Standard, module: Any) -> Any:
    """A module of raw features: (x − center) / scale, then the module."""

    class Standardise(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("center", torch.tensor(units.center))
            self.register_buffer("scale", torch.tensor(units.scale))

        def forward(self, x: Any) -> Any:
            return (x - self.center) / self.scale

    return torch.nn.Sequential(Standardise(), module)
