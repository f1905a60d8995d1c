"""The experiments of the paper by name, in the order of the report, and the two scales at which they run."""

from __future__ import annotations

from typing import Any

from revealed.checks import require_option
from revealed.experiments import (
    breakdown,
    mountaincar,
    objectworld,
    obstacleworld,
    partial_expert,
    specifications,
    timing,
    updates,
)
from revealed.experiments.cells import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    obstacleworld.NAME: obstacleworld,
    mountaincar.NAME: mountaincar,
    objectworld.NAME: objectworld,
    partial_expert.NAME: partial_expert,
    updates.NAME: updates,
    timing.NAME: timing,
    breakdown.NAME: breakdown,
    specifications.NAME: specifications,
}
SCALES = ("quick", "paper")


def plan_for(scale: str) -> dict[str, Any]:
    """The configuration of every experiment at a scale."""
    require_option("scale", scale, SCALES)
    return {
        name: experiment.QUICK if scale == "quick" else experiment.Config() for name, experiment in EXPERIMENTS.items()
    }
