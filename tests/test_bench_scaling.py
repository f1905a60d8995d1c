"""The scaling study's own logic: slopes, jumps, verdicts, what is run and what a second run leaves alone."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import bench_scaling as study
import scaling_tables as tables
from scaling_tables import Point

LINE = ("grid", 0.99, "CCP")
POINTS = [Point(size, *LINE) for size in (1_000, 10_000, 100_000, 1_000_000)]


def record(size: int, seconds: float, solver: str = "LUSolver", **more: object) -> tables.Record:
    kind, discount, task = LINE
    place = {"kind": kind, "size": size, "discount": discount, "task": task, "states": size}
    told = {"solvers": {solver: 1}, "peak_mb": 80.0, "transitions_mb": 20.0, "status": "converged", "iterations": 3}
    return place | told | {"seconds": seconds, "entries": 10 * size} | more


def by_power(power: float, sizes: tuple[int, ...] = (1_000, 10_000, 100_000), **more: str) -> list[tables.Record]:
    return [record(size, 1e-6 * size**power, **more) for size in sizes]


@pytest.mark.parametrize("power", [0.5, 1.0, 1.37])
def test_the_exponent_of_a_power_is_that_power(power: float) -> None:
    assert tables.exponent(by_power(power)) == pytest.approx(power, abs=1e-12)


def test_one_size_has_no_exponent_and_no_cliff() -> None:
    one = [record(1_000, 0.1)]
    assert tables.exponent(one) is None
    assert tables.cliff(one) is None
    assert tables.verdict(None, 1.3) == ""


def test_a_cliff_is_the_largest_jump_of_seconds_per_state() -> None:
    smooth = by_power(1.0)
    jump = tables.cliff([*smooth, record(1_000_000, 7.0, "KrylovSolver")])  # seven times what linear growth gives
    assert jump is not None
    assert jump.factor == pytest.approx(7.0)
    assert str(jump) == "7.0× at 10⁵ → 10⁶, to Krylov"
    assert str(tables.cliff(smooth)).startswith("1.0×")


def test_exponents_are_fitted_by_solver_and_judged_by_their_own_aim() -> None:
    direct = by_power(1.25)
    beyond = [record(size, 1e-5 * size**1.2, "KrylovSolver") for size in (300_000, 1_000_000)]
    heads, (row,) = tables.exponent_table([*beyond, *direct])  # in any order
    told = dict(zip(heads, row))
    assert (told["direct, to 10⁵"], told["aim ≤ 1.3"]) == ("1.25", "met")
    assert (told["iterative, from 10⁵"], told["aim about 1.1"]) == ("1.20", "missed")
    assert told["peak memory in sizes of T"] == "4.0× at 10⁶"
    first, second, _ = tables.findings([*direct, *beyond])
    assert first == "Exponents on the direct solver: 1 of 1 within the aim; largest 1.25 (grid, γ = 0.99, CCP)."
    assert second.startswith("Exponents on the iterative solver: 0 of 1 within the aim; largest 1.20")


def test_about_is_met_within_its_slack_alone() -> None:
    assert [tables.verdict(e, tables.ITERATIVE_AIM, tables.ABOUT) for e in (1.14, 1.16)] == ["met", "missed"]


def test_points_that_waited_for_the_processor_are_reported() -> None:
    waited = [record(1_000, 1.0, cpu_seconds=0.5), record(10_000, 1.0, cpu_seconds=0.99)]
    (sentence,) = tables.cautions(waited)
    assert sentence.startswith("The machine was busy (1 of 2 points had less than 80 % of a core): ")
    assert tables.all_markdown(waited).startswith(sentence)  # before any figure
    assert tables.cautions(waited[1:]) == []


def test_points_of_two_versions_of_the_code_are_reported() -> None:
    mixed = [record(1_000, 1.0, code="a"), record(10_000, 10.0, code="b")]
    assert tables.cautions(mixed) == ["The points are of 2 versions of the code: begin anew to compare them."]
    assert tables.cautions(mixed[:1]) == []


def test_cells_say_what_happened() -> None:
    place = {"kind": "grid", "size": 1_000, "discount": 0.99, "task": "CCP"}
    assert tables.cell(None) == "not run"
    assert tables.cell(place | {"over": 40.0}) == "> 40 s"
    assert tables.cell(place | {"failed": "MemoryError"}) == "failed: MemoryError"
    assert tables.cell(record(1_000, 0.25)) == "250 ms, 80 MB, LU"
    assert tables.cell(record(1_000, 2.5, status="separated")) == "2.5 s, 80 MB, LU, separated"


@pytest.mark.parametrize(("n", "words"), [(1_000, "10³"), (300_000, "3·10⁵"), (99_856, "99,856"), (12_000, "12,000")])
def test_round_numbers_are_written_as_powers(n: int, words: str) -> None:
    assert tables.in_powers(n) == words


class Counting:
    """Takes a second per 10⁵ states, and remembers what it was asked."""

    def __init__(self, stop_at: Point | None = None) -> None:
        self.asked: list[Point] = []
        self.stop_at = stop_at

    def __call__(self, point: Point) -> tables.Record:
        if point == self.stop_at:
            raise KeyboardInterrupt
        self.asked.append(point)
        return record(point.size, 1e-5 * point.size)


def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "points.jsonl"
    with pytest.raises(KeyboardInterrupt):
        study.run(POINTS, study.Records(path), Counting(stop_at=POINTS[2]), 40.0, lambda _: None)
    with path.open("a", encoding="utf-8") as file:
        file.write('{"kind": "grid", "size": 100000, "disc')  # cut off in the middle
    again = Counting()
    records = study.Records(path)
    study.run(POINTS, records, again, 40.0, lambda _: None)
    assert again.asked == POINTS[2:]
    assert study.Records(path).found == records.found
    assert [Point.of(r) for r in records.found.values()] == POINTS


def test_larger_points_of_a_line_over_the_limit_are_not_run(tmp_path: Path) -> None:
    records, said = study.Records(tmp_path / "points.jsonl"), []
    kind, discount, task = LINE
    records.add(POINTS[1], {"kind": kind, "size": 10_000, "discount": discount, "task": task, "over": 20.0})
    counting = Counting()
    study.run(POINTS, records, counting, 20.0, said.append)
    assert counting.asked == POINTS[:1]
    assert said[-1] == "[4/4] grid, 10⁶ states, γ = 0.99, CCP: not run"
    study.run(POINTS, records, counting, 60.0, said.append)  # a higher limit tries what was stopped, and what follows
    assert counting.asked == POINTS


def test_what_linear_growth_would_bring_far_over_the_limit_is_not_run(tmp_path: Path) -> None:
    counting = Counting()  # ten seconds at 10⁶
    study.run(POINTS, study.Records(tmp_path / "points.jsonl"), counting, 5.0, lambda _: None)
    assert counting.asked == POINTS[:3]


def test_a_failed_point_is_tried_again(tmp_path: Path) -> None:
    records, counting = study.Records(tmp_path / "points.jsonl"), Counting()
    place = {"kind": LINE[0], "size": 1_000, "discount": LINE[1], "task": LINE[2]}
    records.add(POINTS[0], place | {"failed": "MemoryError"})
    study.run(POINTS[:1], records, counting, 40.0, lambda _: None)
    assert counting.asked == POINTS[:1]


def test_the_default_plan_has_other_discounts_at_few_sizes() -> None:
    every = study.plan(["grid"], ["CCP"], study.SIZES, study.DISCOUNTS, full=True)
    some = study.plan(["grid"], ["CCP"], study.SIZES, study.DISCOUNTS, full=False)
    assert [p.size for p in every] == sorted(p.size for p in every)
    left_out = {(p.size, p.discount) for p in set(every) - set(some)}
    assert left_out == {(s, g) for s in set(study.SIZES) - set(study.OTHERS) for g in (0.9, 0.9999)}


def test_a_table_of_the_docs_is_replaced_between_its_markers() -> None:
    page = "before\n<!-- scaling: begin -->\nold\n<!-- scaling: end -->\nafter\n"
    new = study.between(page, "scaling", "new")
    assert new == page.replace("old", "new")
    with pytest.raises(SystemExit, match="bandwidth: begin"):
        study.between(page, "bandwidth", "new")


def test_records_survive_the_file(tmp_path: Path) -> None:
    path = tmp_path / "points.jsonl"
    first, second = record(1_000, 0.1), record(1_000, 0.2)
    records = study.Records(path)
    records.add(POINTS[0], first)
    records.add(POINTS[0], second)
    assert study.Records(path).found == {POINTS[0]: second}  # the last one counts
    assert [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] == [first, second]
