"""How far each claim depends on choices that the paper leaves open: the same statistic over a grid of them.

A cell is one specification (`specification_grid`) with one seed: all the fits that the claims of its figures need.
"""

from __future__ import annotations

from revealed.experiments import specification_curves
from revealed.experiments.cells import Cell, Measured, Picture, Results, Table, run_with
from revealed.experiments.specification_fits import MEASURES
from revealed.experiments.specification_grid import QUICK, Config, name_of, specifications

__all__ = ["QUICK", "Config"]
NAME = "specifications"
TITLE = "How much each claim depends on choices the paper does not state"
PAPER = "Figures 1, 2, 3 and 5, and appendix D, under other choices"
ALONE = False
ABOUT = (
    "The paper does not give the discount, the scale of the reward, the density of obstacles and more. Here the "
    "statistic and the rule of each claim are applied to many specifications, each with its own value of every such "
    "choice and seeds of its own, on smaller worlds where fits take long. What flips a claim are choices whose values "
    "differ in how often it holds by more than chance."
)
_COST = {"obstacleworld": 0.6, "partial-expert": 0.3, "mountaincar": 2.5, "objectworld": 6.0}


def cells(config: Config) -> list[Cell]:
    return [
        Cell(NAME, world, "all", k, seed, name_of(specification), _COST[world])
        for world, n, seeds in config.plan
        for k, specification in enumerate(specifications(world, n))
        for seed in range(seeds)
    ]


def measure(config: Config, cell: Cell) -> Measured:
    n = next(n for world, n, _ in config.plan if world == cell.setting)
    chosen = specifications(cell.setting, n)[cell.size]
    found = MEASURES[cell.setting](config, chosen, cell.seed)
    return Measured({"status": "measured", "message": "", "specification": chosen} | found)


run = run_with(NAME, Config)


def draw(results: Results) -> dict[str, Picture]:
    return specification_curves.pictures(results)


def tables(results: Results) -> dict[str, Table]:
    return specification_curves.tables(results)
