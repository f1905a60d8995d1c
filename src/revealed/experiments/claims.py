"""How each claim is judged: by which rule, from what one reading sees of a run or of a specification.

Reasons why a claim does not come out are computed from the same tables, or not given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from revealed.experiments import other_claims as other
from revealed.experiments import time_claims
from revealed.experiments.cells import Results
from revealed.experiments.curve_claims import agreement, behind, does_poorly, does_well, improvement, low_epic, similar
from revealed.experiments.curves import LIMIT
from revealed.experiments.numbers import percent
from revealed.experiments.protocol import NIL
from revealed.experiments.readings import JUDGED, Curves
from revealed.experiments.rules import Outcome, all_of, join
from revealed.mdp import Floats

if TYPE_CHECKING:
    import pandas as pd

WORLDS = {"obstacleworld": "Obstacleworld", "mountaincar": "Mountain Car", "objectworld": "Objectworld"}


class View(Protocol):
    """What a claim is judged from: the worlds at hand, their curves and the rewards that are drawn as maps, the ends of
    the partial expert, the moves of π̃, and the results themselves for what has no readings."""

    @property
    def worlds(self) -> tuple[str, ...]: ...
    @property
    def results(self) -> dict[str, Results]: ...
    @property
    def partial(self) -> pd.DataFrame: ...
    @property
    def moved(self) -> dict[str, Floats]: ...
    def curves(self, world: str) -> Curves: ...
    def maps(self, world: str) -> Curves: ...


@dataclass(frozen=True)
class Claim:
    """How a sentence is judged: from which experiments (or the maps of one alone), by what, and `why` it may not come
    out. `readings` is False where the two do not differ."""

    judge: Callable[[View], Outcome]
    needs: tuple[str, ...]
    readings: bool = True
    why: Callable[[View], str] = field(default=lambda view: "")

    @property
    def experiments(self) -> list[str]:
        return [name.partition(" ")[0] for name in self.needs]


def over_worlds(view: View, curves: Callable[[str], Curves], judge: Callable[[Curves], Outcome]) -> Outcome:
    """One claim about several worlds: its parts are those of each."""
    found = {WORLDS[world]: judge(curves(world)) for world in view.worlds}
    parts = {name: outcome.verdict for name, outcome in found.items()}
    told = join(f"{name}: {outcome.statistic}" for name, outcome in found.items())
    return Outcome(all_of(list(parts.values())), told, parts, score=min(one.score for one in found.values()))


# Reasons, computed from the tables


def same_objective(curves: Curves) -> str:
    """NPL that has settled on MCE-IRL's weights is MCE-IRL (theory E3); empty where that is not what is seen."""
    own, npl = (curves.frame[curves.frame["method"] == method] for method in ("MCE-IRL", "NPL"))
    both = own.merge(npl, on=["seed", "size"], suffixes=("_mce", ""))
    settled = both[(both["settled"] == True) & (both["weighting_mce"] == both["weighting"])]  # noqa: E712
    apart = float((settled["stochastic_evd_mce"] - settled["stochastic_evd"]).abs().max()) if len(settled) else np.inf
    if apart > NIL:
        return ""
    return (
        "With the same weights a settled NPL is a stationary point of MCE-IRL's own objective (theory E3): NPL "
        f"settled in {percent(len(settled) / len(both))} of the fits, and there the two differ in stochastic EVD by at "
        f"most {percent(apart)} of what knowing nothing costs."
    )


def cut_short(curves: Curves) -> str:
    """Searches that did not end at a maximum."""
    share = float((curves.frame["status"] == LIMIT).mean()) if len(curves.frame) else 0.0
    return f"{percent(share)} of the searches ended at the iteration limit, not at a maximum." if share else ""


CLAIMS: dict[str, Claim] = {
    "few-mce-well": Claim(
        lambda v: does_well(v.curves("obstacleworld"), ["MCE-IRL"], v.curves("obstacleworld").few), ("obstacleworld",)
    ),
    "few-others-poor": Claim(
        lambda v: behind(v.curves("obstacleworld"), ("excess_nll", "stochastic_evd", "epic")),
        ("obstacleworld",),
        why=lambda v: same_objective(v.curves("obstacleworld")),
    ),
    "more-data-converge": Claim(
        lambda v: agreement(v.curves("obstacleworld"), v.curves("obstacleworld").sizes[-1:]), ("obstacleworld",)
    ),
    "car-few-poor": Claim(
        lambda v: does_poorly(v.curves("mountaincar"), v.curves("mountaincar").sizes[:1]), ("mountaincar",)
    ),
    "car-improves": Claim(lambda v: improvement(v.curves("mountaincar"), tuple(JUDGED)), ("mountaincar",)),
    "car-alike": Claim(
        lambda v: agreement(v.curves("mountaincar"), *from_400(v.curves("mountaincar").sizes)), ("mountaincar",)
    ),
    "objects-few-poor": Claim(
        lambda v: does_poorly(v.curves("objectworld"), v.curves("objectworld").few), ("objectworld",)
    ),
    "objects-improve": Claim(
        lambda v: improves_and_converges(v.curves("objectworld")),
        ("objectworld",),
        why=lambda v: cut_short(v.curves("objectworld")),
    ),
    "objects-no-difference": Claim(
        lambda v: agreement(v.curves("objectworld"), v.curves("objectworld").few, v.curves("objectworld").sizes[-1:]),
        ("objectworld",),
        why=lambda v: cut_short(v.curves("objectworld")),
    ),
    "epic-low-for-ccp": Claim(lambda v: low_epic(v.curves("objectworld")), ("objectworld",)),
    "epic-improves": Claim(
        lambda v: over_worlds(v, v.curves, lambda curves: improvement(curves, ("epic",))), tuple(WORLDS)
    ),
    "similar-rewards": Claim(lambda v: over_worlds(v, v.maps, similar), tuple(f"{world} maps" for world in WORLDS)),
    "partial-mce-well": Claim(lambda v: other.mce_does_well(v.partial), ("partial-expert",)),
    "partial-npl-corridor": Claim(lambda v: other.npl_as_well_without_corridor(v.partial), ("partial-expert",)),
    "partial-npl-triangle": Claim(lambda v: other.npl_poor_without_triangle(v.partial), ("partial-expert",)),
    "partial-npl-reward": Claim(lambda v: other.npl_misses_reward(v.partial), ("partial-expert",)),
    "settled-after-three": Claim(lambda v: other.comes_to_rest(v.moved), ("updates",), readings=False),
    "faster": Claim(lambda v: time_claims.faster_everywhere(v.results["timing"]), ("timing",), readings=False),
    "steps-cheaper": Claim(lambda v: time_claims.cheaper_steps(v.results["timing"]), ("timing",), readings=False),
    "speed-up-grows": Claim(lambda v: time_claims.grows_with_size(v.results["timing"]), ("timing",), readings=False),
}


def from_400(sizes: Sequence[int]) -> list[list[int]]:
    """Each size from 400 on by itself."""
    return [[n] for n in sizes if n >= 400] or [list(sizes[-1:])]


def improves_and_converges(curves: Curves) -> Outcome:
    """Both halves of one sentence."""
    gains, alike = improvement(curves, tuple(JUDGED)), agreement(curves, curves.sizes[-1:])
    parts = {f"improves: {name}": one for name, one in gains.parts.items()} | alike.parts
    return replace(
        alike, verdict=all_of(list(parts.values())), parts=parts, statistic=join([gains.statistic, alike.statistic])
    )
