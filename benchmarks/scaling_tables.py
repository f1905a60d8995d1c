"""What the scaling study found, from its records: tables, exponents, cliffs, verdicts. `bench_scaling.py` prints them.

A record is a dict: the point (kind, size, discount, task), and either its seconds, memory and what the solvers did, or
`over` (seconds after which it was stopped), or `failed` (why). A point without a record was not run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

KINDS = {
    "grid": "2-d grid, five actions, wind 0.3",
    "roads": "Road network, a state per link",
    "ring": "Garnet, successors within 10 on a ring",
    "random": "Garnet, successors anywhere",
}
TASKS = ("soft optimum", "CCP", "NPL", "NFXP")
DIRECT_TO = 100_000  # up to so many states exponents are those of the direct solver, from there of the iterative one
DIRECT_AIM, ITERATIVE_AIM = 1.3, 1.1
ABOUT = 0.05  # "about 1.1" is met up to 1.15
BUSY = 0.8  # share of a core below which a point was disturbed
DIGITS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")

Record = dict[str, Any]


@dataclass(frozen=True, order=True)
class Point:
    """One measurement: a task on one graph at one discount."""

    size: int
    kind: str
    discount: float
    task: str

    @property
    def line(self) -> tuple[str, float, str]:
        """Points that differ in nothing but their size."""
        return self.kind, self.discount, self.task

    @classmethod
    def of(cls, record: Record) -> Point:
        return cls(int(record["size"]), record["kind"], float(record["discount"]), record["task"])

    def __str__(self) -> str:
        return f"{self.kind}, {in_powers(self.size)} states, γ = {self.discount:g}, {self.task}"


def in_powers(n: int) -> str:
    """100000 → 10⁵, 300000 → 3·10⁵, anything else in plain digits."""
    digits = str(n).rstrip("0")
    zeros = str(len(str(n)) - len(digits)).translate(DIGITS)
    return f"{n:,}" if len(digits) > 1 or n < 10 else f"10{zeros}" if digits == "1" else f"{digits}·10{zeros}"


def solver_of(record: Record) -> str:
    """Which solver was made: "LU", "Krylov", "LU and Krylov", or "sweeps" where none was."""
    made = record.get("solvers", {})
    names = [word for word in ("LU", "Krylov") if any(word in name for name in made)]
    return " and ".join(names) or "sweeps"


def in_seconds(x: float) -> str:
    return f"{x * 1e3:.3g} ms" if x < 1.0 else f"{x:.3g} s"


# -------------------------------------------------------------------------------------------------------- the lines


@dataclass
class Line:
    """The points of one graph, discount and task that were measured to the end, by size."""

    kind: str
    discount: float
    task: str
    records: list[Record] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.kind}, γ = {self.discount:g}, {self.task}"

    @property
    def direct(self) -> list[Record]:
        return [r for r in self.records if r["size"] <= DIRECT_TO and solver_of(r) == "LU"]

    @property
    def iterative(self) -> list[Record]:
        return [r for r in self.records if r["size"] >= DIRECT_TO and solver_of(r) != "LU"]


def lines_of(records: Iterable[Record]) -> list[Line]:
    """In the order of `KINDS`, discounts and `TASKS`; only what was measured to the end."""
    found: dict[tuple[str, float, str], Line] = {}
    for record in sorted(records, key=lambda r: r["size"]):
        if "seconds" in record:
            line = Point.of(record).line
            found.setdefault(line, Line(*line)).records.append(record)
    order = {name: i for names in (KINDS, TASKS) for i, name in enumerate(names)}
    return sorted(found.values(), key=lambda line: (order[line.kind], line.discount, order[line.task]))


def exponent(records: Sequence[Record]) -> float | None:
    """The slope of log seconds on log |S| by least squares; None where fewer than two sizes were measured."""
    states = np.log([r["states"] for r in records])
    if len(set(states.tolist())) < 2:
        return None
    away = states - states.mean()
    return float(away @ np.log([r["seconds"] for r in records]) / (away @ away))


@dataclass(frozen=True)
class Cliff:
    """Where seconds per state jump most between neighbouring sizes, and by which factor."""

    factor: float
    before: Record
    after: Record

    def __str__(self) -> str:
        change = "" if solver_of(self.before) == solver_of(self.after) else f", to {solver_of(self.after)}"
        return f"{self.factor:.1f}× at {in_powers(self.before['size'])} → {in_powers(self.after['size'])}{change}"


def cliff(records: Sequence[Record]) -> Cliff | None:
    """The largest jump of seconds per state; None for fewer than two sizes. Linear growth has a factor of one."""
    each = [r["seconds"] / r["states"] for r in records]
    jumps = [Cliff(after / before, *pair) for before, after, *pair in zip(each, each[1:], records, records[1:])]
    return max(jumps, key=lambda jump: jump.factor, default=None)


def verdict(found: float | None, aim: float, slack: float = 0.0) -> str:
    return "" if found is None else "met" if found <= aim + slack else "missed"


# ------------------------------------------------------------------------------------------------------- the tables

Table = tuple[list[str], list[list[str]]]


def size_table(records: Sequence[Record], kind: str) -> Table:
    """One graph: a row per discount and task, a column per size; T beside the size is that of the transitions."""
    mine = {Point.of(r): r for r in records if r["kind"] == kind}
    sizes = sorted({p.size for p in mine})
    weights = {r["size"]: f" (T {r['transitions_mb']:,.3g} MB)" for r in mine.values() if "transitions_mb" in r}
    heads = ["γ", "task", *(f"{in_powers(size)}{weights.get(size, '')}" for size in sizes)]
    asked = sorted({(p.discount, TASKS.index(p.task), p.task) for p in mine})
    rows = [[f"{g:g}", task, *(cell(mine.get(Point(size, kind, g, task))) for size in sizes)] for g, _, task in asked]
    return heads, rows


def cell(record: Record | None) -> str:
    """Seconds, peak memory, the solver; what went wrong where something did."""
    if record is None:
        return "not run"
    if "over" in record:
        return f"> {record['over']:g} s"
    if "failed" in record:
        return f"failed: {record['failed']}"
    odd = "" if record["status"] == "converged" else f", {record['status']}"
    return f"{in_seconds(record['seconds'])}, {record['peak_mb']:,.0f} MB, {solver_of(record)}{odd}"


def exponent_table(records: Sequence[Record]) -> Table:
    """A row per line: its exponents with the verdicts, its cliff, its memory at the largest size."""
    heads = ["graph", "γ", "task", f"direct, to {in_powers(DIRECT_TO)}", f"aim ≤ {DIRECT_AIM}"]
    heads += [f"iterative, from {in_powers(DIRECT_TO)}", f"aim about {ITERATIVE_AIM}", "over all"]
    heads += ["largest jump of seconds per state", "peak memory in sizes of T"]
    return heads, [_exponent_row(line) for line in lines_of(records) if len(line.records) > 1]


def _exponent_row(line: Line) -> list[str]:
    direct, iterative, over_all = (exponent(part) for part in (line.direct, line.iterative, line.records))
    last = line.records[-1]
    memory = f"{last['peak_mb'] / last['transitions_mb']:.1f}× at {in_powers(last['size'])}"
    row = [line.kind, f"{line.discount:g}", line.task, _number(direct), verdict(direct, DIRECT_AIM)]
    row += [_number(iterative), verdict(iterative, ITERATIVE_AIM, ABOUT), _number(over_all)]
    return [*row, str(cliff(line.records) or ""), memory]


def _number(x: float | None) -> str:
    return "" if x is None else f"{x:.2f}"


def work_table(records: Sequence[Record]) -> Table:
    """What the solvers did at the largest size of each line."""
    heads = ["graph", "γ", "task", "states", "factorisations", "fill", "products", "iterations", "status"]
    return heads, [_work_row(line) for line in lines_of(records)]


def _work_row(line: Line) -> list[str]:
    last = line.records[-1]
    factored = sum(n for name, n in last.get("solvers", {}).items() if "LU" in name)
    fill = f"{last['fill'] / last['entries']:.1f}× T" if last.get("fill") else ""
    row = [line.kind, f"{line.discount:g}", line.task, in_powers(last["size"]), str(factored or ""), fill]
    products = f"{last['products']:,}" if last.get("products") else ""
    return [*row, products, str(last["iterations"]), last["status"]]


def findings(records: Sequence[Record]) -> list[str]:
    """The aims in one sentence each, counted."""
    lines = lines_of(records)
    found = [
        _worst("the direct solver", [(line, exponent(line.direct)) for line in lines], DIRECT_AIM, 0.0),
        _worst("the iterative solver", [(line, exponent(line.iterative)) for line in lines], ITERATIVE_AIM, ABOUT),
    ]
    jumps = [(jump, line) for line in lines if (jump := cliff(line.records)) is not None]
    if jumps:
        jump, line = max(jumps, key=lambda pair: pair[0].factor)
        found.append(f"Largest jump of seconds per state: {jump} ({line.name}).")
    return [sentence for sentence in found if sentence]


def cautions(records: Sequence[Record]) -> list[str]:
    """What keeps the figures from being trusted; they come before them."""
    return [sentence for sentence in (_disturbed(records), _mixed(records)) if sentence]


def _worst(what: str, fitted: Sequence[tuple[Line, float | None]], aim: float, slack: float) -> str:
    told = [(e, line) for line, e in fitted if e is not None]
    if not told:
        return ""
    worst, where = max(told, key=lambda pair: pair[0])
    good = sum(verdict(e, aim, slack) == "met" for e, _ in told)
    return f"Exponents on {what}: {good} of {len(told)} within the aim; largest {worst:.2f} ({where.name})."


def _disturbed(records: Sequence[Record]) -> str:
    """What ran on one thread and took longer than its processor time had to wait for others."""
    timed = [r for r in records if "seconds" in r and "cpu_seconds" in r]
    waited = sum(r["cpu_seconds"] < BUSY * r["seconds"] for r in timed)
    if waited <= 0.05 * len(timed):
        return ""
    share = f"{waited} of {len(timed)} points had less than {100 * BUSY:.0f} % of a core"
    return f"The machine was busy ({share}): seconds, exponents and verdicts below are not to be relied on."


def _mixed(records: Sequence[Record]) -> str:
    n = len({r["code"] for r in records if "code" in r})
    return f"The points are of {n} versions of the code: begin anew to compare them." if n > 1 else ""


def as_markdown(table: Table) -> str:
    heads, rows = table
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *rows))


def all_markdown(records: Sequence[Record]) -> str:
    """Every table under its title, cautions before them, the findings last."""
    kinds = [kind for kind in KINDS if any(r["kind"] == kind for r in records)]
    parts = [f"**{KINDS[kind]}** (`{kind}`)\n\n{as_markdown(size_table(records, kind))}" for kind in kinds]
    parts += [f"**Exponents**\n\n{as_markdown(exponent_table(records))}"]
    parts += [f"**What the solvers did at the largest size**\n\n{as_markdown(work_table(records))}"]
    return "\n\n".join([*cautions(records), *parts, "\n".join(findings(records))])
