"""Every claim of the paper, judged from the run's own tables by the rule written beside it, in both readings.

Intervals are 95 % by Student's t over seeds. No verdict is forced: where the intervals do not decide, the verdict says
so; where the run lacks what the claim speaks of, it says that. Reasons are computed from the same tables, or not given.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from revealed.experiments import (
    mountaincar,
    objectworld,
    partial_expert,
    specification_curves,
    specifications,
    time_claims,
    updates,
)
from revealed.experiments.cells import Results
from revealed.experiments.claims import CLAIMS, WORLDS, Claim
from revealed.experiments.curves import similarities
from revealed.experiments.protocol import ALGORITHM_1, READINGS, REQUIRED, SECTION_5, SENTENCES, Sentence
from revealed.experiments.readings import Curves, curves_of, rows_of, shares
from revealed.experiments.rules import FAILS, UNDECIDED, UNTESTED, Outcome, Share, Verdict
from revealed.mdp import Floats

if TYPE_CHECKING:
    import pandas as pd


EVERYWHERE = ""  # the experiment of a claim about all worlds
TIME_RULES = {
    "faster": time_claims.FASTER_RULE,
    "steps-cheaper": time_claims.STEPS_RULE,
    "speed-up-grows": time_claims.GROWS_RULE,
}


class RunView:
    """What one reading sees of a run: curves by world, ends of the partial expert, moves of π̃."""

    def __init__(self, results: dict[str, Results], reading: str) -> None:
        self.results, self.reading = results, reading

    @property
    def worlds(self) -> tuple[str, ...]:
        return tuple(WORLDS)

    def curves(self, world: str) -> Curves:
        """The metrics that the paper's figure of this world draws."""
        results = self.results[world]
        return curves_of(objectworld.curve_rows(results) if world == "objectworld" else results, self.reading)

    def maps(self, world: str) -> Curves:
        """The rewards that the paper draws as maps: of `Curves` the similarity alone."""
        results = self.results[world]
        shown = objectworld.picture_rows(results) if world == "objectworld" else results
        rows = rows_of(shown, self.reading)
        ends = world == "mountaincar" and len(rows) > 0
        states: Any = ~mountaincar.known_car(results.config)[0].mdp.terminal if ends else slice(None)
        return Curves(shares(rows), (max(results.config.trajectories),), similarities(results, rows, states))

    @property
    def partial(self) -> pd.DataFrame:
        return shares(rows_of(self.results[partial_expert.NAME], self.reading))

    @property
    def moved(self) -> dict[str, Floats]:
        """By world, the largest mean change of π̃ after update 3, by seed."""
        results = self.results[updates.NAME]
        settings = dict.fromkeys(cell.setting for cell in updates.cells(results.config))
        return {where: updates.series(results, where, "average")[:, 3:].max(axis=1, initial=0.0) for where in settings}


def judge(results: dict[str, Results]) -> list[Verdict]:
    """All verdicts whose experiments are there."""
    views = {reading: RunView(results, reading) for reading in READINGS}
    shared = _shares(results)
    return [
        _verdict(sentence, CLAIMS[sentence.key], views, shared.get(sentence.key))
        for sentence in SENTENCES
        if any(name in results for name in CLAIMS[sentence.key].experiments)
    ]


def _shares(results: dict[str, Results]) -> dict[str, Share]:
    """How the claims fare over the specifications, where there are any."""
    found = results.get(specifications.NAME)
    try:
        return {} if found is None else specification_curves.shares_of(found)
    except Exception:  # the report notes what it cannot show of them; the verdicts do not depend on it
        return {}


def _verdict(sentence: Sentence, claim: Claim, views: dict[str, RunView], share: Share | None) -> Verdict:
    section5 = _outcome(claim, views[SECTION_5])
    algorithm1 = _outcome(claim, views[ALGORITHM_1]) if claim.readings else None
    rule = sentence.rule or TIME_RULES[sentence.key]
    return Verdict(
        sentence.key, sentence.experiment or EVERYWHERE, sentence.claim, sentence.quote, sentence.place, rule,
        section5, algorithm1, share,
    )  # fmt: skip


def _outcome(claim: Claim, view: RunView) -> Outcome:
    """One that cannot be judged must not take the others with it."""
    absent = [name for name in claim.experiments if name not in view.results]
    if absent:
        return Outcome(UNTESTED, f"The run has no {' and no '.join(absent)}.")
    lacking: list[str] = []
    try:
        lacking = [text for name in claim.needs for text in lacks(name, view)]
        found = claim.judge(view)
    except Exception as error:
        told = f"could not be judged: {_in_words(error)}"
        return Outcome(UNTESTED, f"Needs {', '.join(lacking)}.") if lacking else Outcome(UNDECIDED, told)
    if lacking:
        return replace(found, verdict=UNTESTED, statistic=_would_be(found, lacking))
    return replace(found, reason=found.reason or _why(claim, view)) if found.verdict == FAILS else found


def _why(claim: Claim, view: RunView) -> str:
    """A reason that cannot be computed does not take the verdict with it."""
    try:
        return claim.why(view)
    except Exception as error:
        return f"it could not be computed: {_in_words(error)}"


def _in_words(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _would_be(found: Outcome, lacking: list[str]) -> str:
    return f"Needs {', '.join(lacking)}. At this scale: {found.verdict} ({found.statistic})"


def lacks(name: str, view: Any) -> list[str]:
    """What a claim about an experiment, or about its maps alone, needs and this run does not have, in words."""
    experiment, _, maps = name.partition(" ")
    required = REQUIRED.get(name, REQUIRED.get(experiment))
    if required is None:
        return []
    config = view.results[experiment].config
    here = settings_of(name, config)
    found = [f"{where} (here {', '.join(here)})" for where in required.settings if where not in here]
    sizes = getattr(config, "trajectories", ())
    asked = required.trajectories[-1:] if maps else required.trajectories
    found += [f"{n} trajectories" for n in asked if n not in sizes]
    seeds = seeds_of(name, view)
    return found + ([f"{required.seeds} seeds (here {seeds})"] if seeds < required.seeds else [])


def settings_of(name: str, config: Any) -> list[str]:
    """The settings of an experiment's figure, or of its maps."""
    if name == updates.NAME:
        return list(dict.fromkeys(cell.setting for cell in updates.cells(config)))
    if name.startswith(mountaincar.NAME):
        return [mountaincar.setting(config)]
    if name.startswith(objectworld.NAME):
        size = config.picture if name.endswith("maps") else config.size
        return [objectworld.setting(size, config.colors)]
    return [f"Obstacleworld {config.size}²"]


def seeds_of(name: str, view: Any) -> int:
    """Seeds for which everything has been measured."""
    experiment, _, maps = name.partition(" ")
    if maps:
        return len(view.maps(experiment).similarity)
    if experiment in WORLDS:
        return view.curves(experiment).seeds
    if experiment == partial_expert.NAME:
        counts = view.partial.groupby("seed").size()
        return int((counts >= len(partial_expert.CASES) * len(partial_expert.METHODS)).sum())
    return min((len(after) for after in view.moved.values()), default=0)
