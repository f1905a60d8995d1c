"""Standard errors and bounds of many quantities at once (theory L3), whatever they are: by name, as arrays.

A world has one array per name; the change from one to another has one where both are of the same form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from revealed.bootstrap import draw_bounds
from revealed.checks import Floats
from revealed.doubt import Doubt, Spread, over_draws
from revealed.positions import same_labels

Named = dict[str, Floats]
Bounds = dict[str, Named]  # se, lower and upper
PARTS = ("se", "lower", "upper")


def difference(then: Any, now: Any, names: Iterable[str]) -> dict[str, Any]:
    """After less before, NaN where they cannot be compared; of what has −∞ (an infeasible action), nothing."""
    out = {}
    for name in names:
        x, y = np.asarray(getattr(then, name)), np.asarray(getattr(now, name))
        gap = np.full(x.shape, np.nan)
        if x.shape == y.shape and comparable(then, now, name):
            np.subtract(x, y, out=gap, where=np.isfinite(x) & np.isfinite(y))
        out[name] = gap.item() if gap.ndim == 0 else gap
    return out


_AXES = {"policy": ("state", "action"), "q": ("state", "action"), "frequencies": ("action",), "welfare": ()}


def comparable(then: Any, now: Any, name: str) -> bool:
    """Whether the numbers of two worlds are those of the same states and actions, where their models have labels."""
    models = getattr(then, "mdp", None), getattr(now, "mdp", None)
    if models[0] is None or models[1] is None:
        return True
    roles = [f"{role}_labels" for role in _AXES.get(name, ("state",))]
    return all(same_labels(getattr(models[0], role), getattr(models[1], role)) for role in roles)


def blank(like: Any, names: Iterable[str]) -> Bounds:
    """NaN of the right shapes, which takes no room."""
    nothing = {name: np.broadcast_to(np.nan, np.shape(getattr(like, name))) for name in names}
    return dict.fromkeys(PARTS, nothing)


def size_of(values: Any) -> float:
    """At least one: shares and probabilities are of that size."""
    finite = np.abs(np.asarray(values))
    return max(1.0, float(finite[np.isfinite(finite)].max(initial=0.0)))


Slopes = tuple[Any, Any]  # derivatives of the quantities of both worlds, parameters along the last axis
Later = Callable[[int, int], tuple[Slopes, Floats]]  # in some of very many ψ; with how far each moves values


def delta_bounds(
    doubts: Doubt,
    at: tuple[Any, Any],
    slopes: Slopes,
    size: Floats,
    names: Sequence[str],
    limits: dict[str, tuple[float, float]],
    later: Later | None = None,
    n_pairs: int = 1,
) -> list[Bounds]:
    """Of before, after and the change, by the delta method.

    `at` and `slopes` hold the quantities of both worlds and their derivatives, parameters along the last axis; `size`
    is how far each parameter moves values; `limits` are those within which the levels of a quantity can be. Where there
    are very many ψ, `later(begin, end)` has the derivatives in some of them.
    """
    scales = {name: max(size_of(getattr(side, name)) for side in at) for name in names}
    sums = {
        (way, name): Spread(doubts, slope, size, scales[name])
        for name in names
        for way, slope in enumerate(_ways(slopes, name))
    }
    for group in doubts.groups(n_pairs):
        for piece in group.pieces:
            assert later is not None
            some, sizes = later(*piece)
            for name in names:
                for way, slope in enumerate(_ways(some, name)):
                    sums[way, name].add(group, piece, slope, sizes)
    change = difference(at[1], at[0], names)
    levels = [{name: np.asarray(getattr(side, name)) for name in names} for side in at]
    levels.append({name: np.asarray(change[name]) for name in names})
    return [_bounds(sums, way, levels[way], doubts, {} if way == 2 else limits) for way in range(3)]


def _ways(slopes: Slopes, name: str) -> tuple[Floats, Floats, Floats]:
    """Of before, after and the change; where worlds differ in size the change is not known, and its slope no matter."""
    now, then = (getattr(side, name) for side in slopes)
    return now, then, then - now if then.shape == now.shape else np.zeros_like(then)


def _bounds(sums: dict[tuple[int, str], Spread], way: int, levels: Named, doubts: Doubt, limits: Any) -> Bounds:
    se = {name: np.where(np.isfinite(level), sums[way, name].se, np.nan) for name, level in levels.items()}
    return around(levels, se, doubts.z, limits)


def around(levels: Named, se: Named, z: float, limits: dict[str, tuple[float, float]]) -> Bounds:
    """Bounds at z standard errors to either side, within the limits of what such a thing can be."""
    low = {name: x - z * se[name] for name, x in levels.items()}
    high = {name: x + z * se[name] for name, x in levels.items()}
    for name, (least, most) in limits.items():
        low[name], high[name] = np.maximum(low[name], least), np.minimum(high[name], most)
    return {"se": se, "lower": low, "upper": high}


def bootstrap_bounds(
    doubts: Doubt, both: Any, at: tuple[Any, Any], kept: Sequence[str], names: Sequence[str], notes: list[str]
) -> list[Bounds]:
    """Of before, after and the change, over the draws; `both` worlds are asked `at(theta, psi)` for what is `kept`."""
    draws = over_draws("counterfactual", partial(_draw, both, kept), doubts, notes)
    return [percentile_bounds([d[i] for d in draws], doubts, at[min(i, 1)], names) for i in range(3)]


def _draw(both: Any, kept: Sequence[str], theta: Floats, psi: Floats) -> list[dict[str, Any]]:
    """Before, after and the change at one draw."""
    now, then = (side.at(theta, psi) for side in both)
    levels = [{name: np.asarray(getattr(side, name)) for name in kept} for side in (now, then)]
    return [*levels, {name: np.asarray(x) for name, x in difference(then, now, kept).items()}]


def percentile_bounds(draws: list[dict[str, Any]], doubts: Doubt, like: Any, names: Iterable[str]) -> Bounds:
    """Standard deviations and percentiles of the draws; NaN for what was not kept."""
    found = {part: dict(values) for part, values in blank(like, names).items()}
    for name in draws[0]:
        table = np.stack([draw[name] for draw in draws])
        table = np.where(np.isfinite(table), table, np.nan)
        low, high = draw_bounds(table, doubts.tails)
        for part, values in zip(PARTS, (table.std(axis=0, ddof=1), low, high), strict=True):
            found[part][name] = np.asarray(values)
    return found
