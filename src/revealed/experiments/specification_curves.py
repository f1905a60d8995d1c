"""Claims over the specifications: in how many each holds, what flips it, and the picture of all of them at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from revealed.experiments.cells import Picture, Results, Table
from revealed.experiments.claims import CLAIMS, WORLDS
from revealed.experiments.numbers import percent, short, whole_percent
from revealed.experiments.protocol import SENTENCES
from revealed.experiments.readings import Curves, shares
from revealed.experiments.rules import FAILS, HOLDS, UNDECIDED, Outcome, Share
from revealed.experiments.specification_grid import CHOICES, VALUES, WORDS, specifications
from revealed.mdp import Floats

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ANY_WORLD = ("epic-improves", "similar-rewards", "settled-after-three")
CLAIMS_OF = {
    "obstacleworld": ("few-mce-well", "few-others-poor", "more-data-converge", *ANY_WORLD),
    "mountaincar": ("car-few-poor", "car-improves", "car-alike", *ANY_WORLD),
    "objectworld": ("objects-few-poor", "objects-improve", "objects-no-difference", "epic-low-for-ccp", *ANY_WORLD),
    "partial-expert": ("partial-mce-well", "partial-npl-corridor", "partial-npl-triangle", "partial-npl-reward"),
}
SHORT = {sentence.key: sentence.claim for sentence in SENTENCES}
FLIPS = 0.30  # a choice whose values differ by so much in the share of specifications that hold, flips the claim
LEAST = 5  # specifications with a value that tell anything of it
DEALS = 200  # random deals of the verdicts, by which chance is told
COLORS = {HOLDS: "#0072b2", FAILS: "#d55e00", UNDECIDED: "#999999"}
MARKS = {HOLDS: "o", FAILS: "v", UNDECIDED: "s"}
# what the marks of a claim measure, on the axis
SCORES = {
    "few-mce-well": "MCE-IRL's worst metric, share",
    "few-others-poor": "smallest lead of MCE-IRL, share",
    "more-data-converge": "largest difference, in bounds",
    "car-few-poor": "lowest metric, share",
    "car-improves": "smallest fall, share",
    "car-alike": "largest difference, in bounds",
    "objects-few-poor": "lowest metric, share",
    "objects-improve": "largest difference at the end, in bounds",
    "objects-no-difference": "largest difference, in bounds",
    "epic-low-for-ccp": "CCP's EPIC over the others'",
    "epic-improves": "smallest fall of EPIC, share",
    "similar-rewards": "least correlation",
    "settled-after-three": "mean change after update 3",
    "partial-mce-well": "MCE-IRL's worst loss, share",
    "partial-npl-corridor": "NPL above MCE-IRL, share",
    "partial-npl-triangle": "NPL above MCE-IRL, share",
    "partial-npl-reward": "NPL's EVD, share",
}
LOGARITHMIC = (
    "settled-after-three", "few-mce-well", "few-others-poor", "more-data-converge", "car-alike",
    "objects-no-difference", "objects-improve",
)  # fmt: skip


class SpecificationView:
    """One specification as claims see it: its rows, one for each seed."""

    results: dict[str, Results] = {}  # nothing here is judged from a run

    def __init__(self, world: str, rows: pd.DataFrame) -> None:
        self.worlds, self.rows = (world,), rows

    @cached_property
    def fits(self) -> pd.DataFrame:
        """A row for each fit, metrics as shares."""
        import pandas as pd

        lines = [
            {"seed": row.seed, "floor": row.floor, "span": row.span, "blind": row.blind, **fit}
            for row in self.rows.itertuples()
            for fit in cast(Any, row.fits)
        ]
        return shares(pd.DataFrame(lines))

    @cached_property
    def _curves(self) -> Curves:
        return Curves(self.fits, tuple(sorted({int(n) for n in self.fits["size"]})))

    def curves(self, world: str) -> Curves:
        return self._curves

    def maps(self, world: str) -> Curves:
        return Curves(self.rows, (0,), self.rows["similarity"].to_numpy(dtype=np.float64))

    @property
    def partial(self) -> pd.DataFrame:
        return self.fits

    @property
    def moved(self) -> dict[str, Floats]:
        return {WORLDS[self.worlds[0]]: self.rows["moved"].to_numpy(dtype=np.float64)}


@dataclass(frozen=True)
class Judged:
    """A claim in one specification."""

    claim: str
    world: str
    specification: dict[str, Any]
    outcome: Outcome


def judged(results: Results) -> list[Judged]:
    """Every claim in every specification that has all of its seeds."""
    return list(_judged(results))


def _judged(results: Results) -> Iterator[Judged]:
    frame = results.frame
    for world, _, seeds in results.config.plan:
        own = frame[frame["setting"] == world]
        for _, rows in own.groupby("size"):
            if len(rows) == seeds:
                view = SpecificationView(world, rows)
                chosen = rows["specification"].iloc[0]
                for key in CLAIMS_OF[world]:
                    yield Judged(key, world, chosen, CLAIMS[key].judge(view))


def shares_of(results: Results) -> dict[str, Share]:
    """How each claim fares over its specifications."""
    by_claim: dict[str, list[Judged]] = {}
    for one in judged(results):
        by_claim.setdefault(one.claim, []).append(one)
    return {key: _share(found) for key, found in by_claim.items()}


def _share(found: list[Judged]) -> Share:
    counts = [sum(one.outcome.verdict == verdict for one in found) for verdict in (HOLDS, FAILS, UNDECIDED)]
    worlds = dict.fromkeys(one.world for one in found)
    if len(worlds) == 1:
        return Share(*counts, flips=what_flips(found))
    by_world = {WORLDS[world]: _share([one for one in found if one.world == world]) for world in worlds}
    flips = "; ".join(f"{name}: {share.flips}" for name, share in by_world.items() if share.flips)
    return Share(*counts, flips=flips, by_world=by_world)


def what_flips(found: list[Judged]) -> str:
    """The choices whose values differ in how often the claim holds, by more than chance and by at least `FLIPS`, with
    the shares; empty where none does. Values in fewer than `LEAST` specifications are left out."""
    holds = np.array([one.outcome.verdict == HOLDS for one in found], dtype=np.float64)
    members = {name: _members(found, name) for name in found[0].specification}
    spreads = {name: _spread(holds, values) for name, values in members.items()}
    bound = max(FLIPS, _by_chance(holds, members))
    telling = sorted((name for name in spreads if spreads[name] > bound), key=lambda name: -spreads[name])[:2]
    return "; ".join(f"{WORDS[name]} ({_shares_by_value(holds, members[name])})" for name in telling)


def _members(found: list[Judged], name: str) -> dict[Any, Any]:
    """By value of a choice, which specifications have it, where they are enough."""
    values = dict.fromkeys(one.specification[name] for one in found)
    there = {value: np.array([one.specification[name] == value for one in found]) for value in values}
    return {value: which for value, which in there.items() if which.sum() >= LEAST}


def _spread(holds: Floats, members: dict[Any, Any]) -> float:
    parts = [float(holds[which].mean()) for which in members.values()]
    return max(parts) - min(parts) if len(parts) > 1 else 0.0


def _by_chance(holds: Floats, members: dict[str, dict[Any, Any]]) -> float:
    """The 95th percentile of the widest spread of any choice if verdicts were dealt out at random."""
    rng = np.random.default_rng(0)
    widest = [max(_spread(rng.permutation(holds), values) for values in members.values()) for _ in range(DEALS)]
    return float(np.quantile(widest, 0.95))


def _shares_by_value(holds: Floats, members: dict[Any, Any]) -> str:
    parts = {_written(value): float(holds[which].mean()) for value, which in members.items()}
    return ", ".join(f"{value}: {whole_percent(part)}" for value, part in parts.items())


def _written(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else VALUES.get(value, str(value))


# The picture: a mark for each specification, sorted, and its choices below


def pictures(results: Results) -> dict[str, Picture]:
    """One for each claim; claims about all worlds have one for each of them."""
    groups: dict[tuple[str, str], list[Judged]] = {}
    for one in judged(results):
        groups.setdefault((one.claim, one.world), []).append(one)
    made = {}
    for (claim, world), found in groups.items():
        key = claim if claim not in ANY_WORLD else f"{claim}-{world}"
        made[key] = _picture(results, claim, world, sorted(found, key=lambda one: _score(one)))
    return made


def _score(one: Judged) -> float:
    return one.outcome.score if np.isfinite(one.outcome.score) else np.inf


def _picture(results: Results, claim: str, world: str, found: list[Judged]) -> Picture:
    share = _share(found)
    where = f" ({WORLDS[world]} alone)" if claim in ANY_WORLD else ""
    caption = (
        f"{SHORT[claim]}{where} {len(found)} specifications, one mark each, sorted by the statistic: the claim holds "
        f"in {share.holds} ({percent(share.holds / share.of)}), does not hold in {share.fails}, is undecided in "
        f"{share.undecided}. Below: the value of every choice; large rings: the two readings with all other choices as "
        f"in the protocol. {_setting(results, world)}"
    )
    flips = f" What flips it: {share.flips}." if share.flips else ""
    alt = f"Sorted marks from {short(_score(found[0]))} to {short(_score(found[-1]))} above a matrix of dots: "
    return Picture(
        _draw(claim, world, found), caption + flips, f"{alt}{SCORES[claim]}, {share.holds} of {share.of} hold."
    )


def _setting(results: Results, world: str) -> str:
    """On what, with how many seeds, and what was left out."""
    config = results.config
    n, seeds = next((n, seeds) for name, n, seeds in config.plan if name == world)
    where = {
        "obstacleworld": f"Obstacleworld {config.obstacleworld.size}²",
        "partial-expert": f"Obstacleworld {config.partial.size}², each maximum found by the library's own optimiser",
        "mountaincar": f"Mountain Car {config.mountaincar.bins}²",
        "objectworld": f"Objectworld {config.objectworld.size}², at most {config.objectworld.max_iter} iterations",
    }[world]
    whole = int((results.where(setting=world).groupby("size").size() == seeds).sum())
    left_out = f" {n - whole} specifications without all their seeds are left out." if whole < n else ""
    return f"{where}; {seeds} seeds each.{left_out}"


def _draw(claim: str, world: str, found: list[Judged]) -> Figure:
    from matplotlib.figure import Figure

    levels = [(name, value) for name, values in CHOICES[world].items() for value in values]
    figure = Figure(figsize=(10.5, 2.3 + 0.155 * len(levels)), layout="constrained")
    top, below = figure.subplots(2, 1, sharex=True, height_ratios=(2.0, 0.155 * len(levels)))
    _draw_marks(top, claim, found)
    _draw_readings(top, world, found)
    _draw_choices(below, levels, found)
    return figure


def _draw_marks(ax: Axes, claim: str, found: list[Judged]) -> None:
    for verdict, color in COLORS.items():
        chosen = [(k, one.outcome.score) for k, one in enumerate(found) if one.outcome.verdict == verdict]
        if chosen:
            ax.plot(*zip(*chosen), linestyle="none", marker=MARKS[verdict], markersize=4.0, color=color,
                    label=f"{verdict} ({len(chosen)})")  # fmt: skip
    if claim in LOGARITHMIC:
        ax.set_yscale("symlog", linthresh=1e-4 if claim == "settled-after-three" else 0.1)
    ax.set_ylabel(SCORES[claim].replace(", ", ",\n"), fontsize=9)
    ax.legend(fontsize=9, frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, borderpad=0.0)
    ax.grid(axis="y", alpha=0.25, linewidth=0.6)
    ax.set_title(SHORT[claim], fontsize=11, loc="left", pad=20.0)


def _draw_readings(ax: Axes, world: str, found: list[Judged]) -> None:
    """A ring around the two specifications that are the readings themselves."""
    first = specifications(world, 2)
    for k, one in enumerate(found):
        if one.specification in first:
            ax.plot(k, one.outcome.score, marker="o", markersize=11, markerfacecolor="none", color="black")
            ax.annotate(_written(one.specification["weights"]), (k, one.outcome.score), xytext=(0, -16), ha="center",
                        textcoords="offset points", fontsize=8)  # fmt: skip


def _draw_choices(ax: Axes, levels: list[tuple[str, Any]], found: list[Judged]) -> None:
    from matplotlib.ticker import MaxNLocator

    dense = len(found) > 60
    for row, (name, value) in enumerate(levels):
        there = [k for k, one in enumerate(found) if one.specification[name] == value]
        colors = [COLORS[found[k].outcome.verdict] for k in there]
        ax.scatter(
            there, [row] * len(there), s=16 if dense else 5, c=colors, marker="|" if dense else "o", linewidths=1.2
        )
    starts = [row for row, (name, _) in enumerate(levels) if row and levels[row - 1][0] != name]
    for row in starts:
        ax.axhline(row - 0.5, color="0.85", linewidth=0.7)
    ax.set_yticks(range(len(levels)), [f"{WORDS[name]}: {_written(value)}" for name, value in levels], fontsize=8)
    ax.set_ylim(len(levels) - 0.5, -0.5)
    ax.set_xlabel("specifications, sorted", fontsize=9)
    ax.set_xlim(-1, len(found))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def tables(results: Results) -> dict[str, Table]:
    """The shares, and every specification with every verdict."""
    import pandas as pd

    found = judged(results)
    lines = [
        {"claim": SHORT[key], "holds": one.holds, "does not hold": one.fails, "undecided": one.undecided,
         "share that holds": percent(one.holds / one.of), "what flips it": one.flips}
        for key, one in shares_of(results).items()
    ]  # fmt: skip
    every = [
        {"world": one.world, **{WORDS[name]: str(_written(value)) for name, value in one.specification.items()},
         "claim": one.claim, "verdict": one.outcome.verdict, "statistic": short(one.outcome.score, 3)}
        for one in found
    ]  # fmt: skip
    return {
        "shares": Table(pd.DataFrame(lines), "Each claim over its specifications."),
        "all": Table(pd.DataFrame(every).fillna(""), "Every claim in every specification."),
    }
