"""Where trajectories start and which time is period 0: gaps are no starts, late entry is not guessed, by any route."""

import datetime as dt
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import revealed as rv
from revealed.cli import app
from revealed.errors import InvalidDemonstrations, InvalidInput

dd = pytest.importorskip("dask.dataframe")
pl = pytest.importorskip("polars")

NAMES: Any = {"id": "bus", "time": "month", "state": "x", "action": "d"}
WORDS = ["--id", "bus", "--time", "month", "--state", "x", "--action", "d", "--reward", "tabular", "--l2", "0.01"]
S, AGENTS, LENGTH, TRUTH = 10, 400, 25, np.array([-0.5, -5.0])


def machine() -> rv.MDP:
    """Wear goes up by 0 or 1; replacing makes it new."""
    keep, replace = np.zeros((S, S)), np.tile(np.eye(S)[0], (S, 1))
    for s in range(S):
        for up, p in ((0, 0.6), (1, 0.4)):
            keep[s, min(s + up, S - 1)] += p
    return rv.MDP(np.stack([keep, replace], axis=1), discount=0.95)


def reward() -> rv.LinearReward:
    X = np.zeros((S, 2, 2))
    X[:, 0, 0], X[:, 1, 1] = np.arange(S), 1.0
    return rv.LinearReward(X, names=["wear", "price"])


def simulated(mdp: rv.MDP, n: int = AGENTS, seed: int = 0) -> rv.Demonstrations:
    best = rv.solve(mdp, reward().value(TRUTH) if mdp.base is None else mdp.lift(reward().value(TRUTH)))
    start = np.zeros(mdp.n_states)
    start[0] = 1.0  # everybody starts new, where the value is largest
    return rv.simulate(mdp, best.policy, n, LENGTH, seed=seed, initial=start)


@pytest.fixture(scope="module")
def full() -> pd.DataFrame:
    frame = simulated(machine()).to_frame(**NAMES)
    return frame.assign(w=1.0 + frame["bus"] % 3, trip=frame["bus"] * 10)


@pytest.fixture(scope="module")
def holed(full) -> pd.DataFrame:
    """The same panel without 30 % of its rows, in no order."""
    return full.sample(frac=0.7, random_state=1)


def first_rows(frame: pd.DataFrame, weight: str | None = None) -> np.ndarray:
    first = frame.sort_values("month").groupby("bus").head(1)
    return np.bincount(first["x"], None if weight is None else first[weight], S)


def read(frame: Any, **options: Any) -> rv.Demonstrations:
    given: dict[str, Any] = {"n_states": S, "n_actions": 2} | options
    return rv.Demonstrations.from_frame(frame, **NAMES, **given)


ROUTES: dict[str, Any] = {
    "memory": lambda frame, _: (frame, None),
    "counts of memory": lambda frame, _: (frame, False),
    "arrow": lambda frame, _: (pl.from_pandas(frame).to_arrow(), None),
    "duckdb": lambda frame, _: (duckdb.from_df(frame), False),
    "polars": lambda frame, _: (pl.from_pandas(frame).lazy(), False),
    "dask": lambda frame, _: (dd.from_pandas(frame, npartitions=3), False),
    "csv": lambda frame, folder: (write(frame, folder), None),
    "counts of a csv": lambda frame, folder: (write(frame, folder), False),
}


def write(frame: pd.DataFrame, folder: Any) -> str:
    frame.to_csv(folder / "panel.csv", index=False)
    return str(folder / "panel.csv")


# ------------------------------------------------------------------------------------------------ gaps are not starts


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("route", ROUTES)
def test_starts_are_the_first_rows_by_every_route(holed, route, weight, tmp_path):
    """And what is broken stays broken: no move leads across a gap; the note says how many gaps there are."""
    source, keep_steps = ROUTES[route](holed, tmp_path)
    demos = read(source, keep_steps=keep_steps, weight=weight)
    np.testing.assert_array_equal(demos.starts, first_rows(holed, weight))
    ordered = holed.sort_values(["bus", "month"])
    same, step = ordered["bus"].diff().eq(0), ordered["month"].diff()
    often = ordered["w"].shift() if weight else 1.0
    assert demos.transition_counts.sum() == ((same & step.eq(1)) * often).sum()
    gaps = int((same & step.gt(1)).sum())
    assert any(note.startswith(f"{gaps} gaps in time") and "are not starts" in note for note in demos.notes)


def test_starts_of_single_agents_do_not_count_gaps_either(holed, tmp_path):
    twice = np.arange(AGENTS, dtype=np.float64) % 2.0
    kept = read(holed).reweighted(twice).starts
    for route in ("counts of memory", "duckdb", "polars"):
        source, _ = ROUTES[route](holed, tmp_path)
        np.testing.assert_array_equal(read(source, keep_steps=False).reweighted(twice).starts, kept)
    np.testing.assert_array_equal(read(holed).subset(slice(0, 50)).starts, first_rows(holed[holed["bus"] < 50]))


def test_welfare_and_counterfactuals_do_not_move_when_rows_are_lost(full, holed):
    """Rows lost at random cost precision and nothing else. Where gaps were starts, welfare at the same parameters moved
    by up to 4.5 standard errors: most rows that come after a gap are far from new."""
    fits = [rv.NFXP(reward()).fit(machine(), read(frame)) for frame in (full, holed)]
    one, two = (fit.counterfactual(params={"price": -7.0}) for fit in fits)
    assert "Starts: where the data started." in str(two)
    for side in ("before", "after", "change"):
        a, b = getattr(one, side), getattr(two, side)
        assert abs(a.welfare - b.welfare) < 3.0 * np.hypot(a.se.welfare, b.se.welfare)
    there = fits[1].counterfactual(params={"price": -7.0}, initial=first_rows(full) / AGENTS)
    for side in ("before", "after", "change"):
        moved = abs(getattr(two, side).welfare - getattr(there, side).welfare)
        assert moved < getattr(two, side).se.welfare


def test_occupancy_weights_and_simulations_start_where_ids_do(holed):
    fit = rv.NFXP(reward(), weighting="occupancy").fit(machine(), read(holed))
    given = machine().replace(initial=first_rows(holed) / first_rows(holed).sum())
    np.testing.assert_allclose(fit.theta, rv.NFXP(reward(), weighting="occupancy").fit(given, read(holed)).theta)
    drawn = fit.simulate(3000, 1, seed=0).starts / 3000
    np.testing.assert_allclose(drawn, first_rows(holed) / AGENTS, atol=0.04)


def test_on_a_horizon_rows_after_a_gap_have_their_time_and_are_no_starts(full):
    frame = full[full["month"].isin([0, 1, 5, 6])]
    lifted = read(frame).lift(machine().unroll(LENGTH))
    np.testing.assert_array_equal(lifted.starts, [*first_rows(full), *np.zeros(LENGTH * S)])
    assert lifted.counts.reshape(-1, S, 2).sum(axis=(1, 2)).nonzero()[0].tolist() == [0, 1, 5, 6]


def test_the_fit_says_how_many_gaps_there_were(holed):
    text = str(rv.NFXP(reward()).fit(machine(), read(holed)).summary())
    assert "gaps in time broke trajectories" in " ".join(text.split())


def test_the_command_line_starts_where_ids_do(holed, tmp_path):
    holed.to_csv(tmp_path / "panel.csv", index=False)
    words = [*WORDS, "--method", "ccp", "--unseen", "stay"]
    done = CliRunner().invoke(app, ["fit", str(tmp_path / "panel.csv"), *words, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    saved = rv.load(tmp_path / "out").demonstrations
    np.testing.assert_array_equal(saved.starts, first_rows(holed)[: saved.n_states])


def test_flat_transitions_with_rows_missing_have_no_more_starts():
    states = np.array([0, 1, 2, 3, 4, 5])
    flat = {"obs": states[:-1], "acts": np.ones(5, int), "next_obs": states[1:], "dones": np.arange(5) == 4}
    lost = {name: np.delete(values, [2]) for name, values in flat.items()}
    demos = rv.Demonstrations.from_episodes([flat, lost], n_states=6, n_actions=2)
    np.testing.assert_array_equal(demos.starts, [2, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(demos.origins, [0, 0])
    assert demos.n_agents == 2
    assert "not a start" in demos.notes[0]


# ------------------------------------------------------------------------------------------------- several episodes


@pytest.mark.parametrize("route", ROUTES)
def test_episodes_of_one_id_start_each_by_every_route(full, route, tmp_path):
    """Twenty ids with twenty episodes each, whose times all begin at 0."""
    frame = full.assign(bus=full["bus"] % 20, run=full["bus"] // 20).sample(frac=0.8, random_state=2)
    source, keep_steps = ROUTES[route](frame, tmp_path)
    demos = read(source, keep_steps=keep_steps, episode="run")
    first = frame.sort_values("month").groupby(["bus", "run"]).head(1)
    np.testing.assert_array_equal(demos.starts, np.bincount(first["x"], minlength=S))
    assert demos.n_agents == 20
    whole = read(frame.assign(bus=frame["bus"] * 100 + frame["run"]))
    np.testing.assert_array_equal(demos.transition_counts.toarray(), whole.transition_counts.toarray())
    if keep_steps is None:
        np.testing.assert_array_equal(demos.trajectory, whole.trajectory)
        assert demos.steps is not None
        assert whole.steps is not None
        np.testing.assert_array_equal(demos.steps.time, whole.steps.time)


def test_without_the_column_of_episodes_the_error_names_it(full):
    with pytest.raises(InvalidDemonstrations, match=r"id 0 twice at time 0 .*episode=\."):
        read(full.assign(bus=full["bus"] % 20))


def test_a_frame_of_several_trajectories_comes_back_as_it_was():
    given = rv.Demonstrations.from_trajectories([([0, 1], [0, 1]), ([3, 2, 1], [0, 0])], 4, 2, ids=["a", "a"])
    frame = given.to_frame()
    names: Any = {name: name for name in ("id", "time", "state", "action", "episode")}
    back = rv.Demonstrations.from_frame(frame, **names, n_states=4)
    np.testing.assert_array_equal(back.starts, given.starts)
    horizon = rv.MDP(np.full((4, 2, 4), 0.25)).unroll(3)
    np.testing.assert_array_equal(back.lift(horizon).counts, given.lift(horizon).counts)


def test_single_periods_are_counted_by_episode_everywhere(tmp_path):
    frame = pd.DataFrame({"bus": 1, "month": [0, 1, 0, 5], "x": 0, "d": 0, "run": [1, 1, 2, 3]})
    for route in ("memory", "duckdb", "polars"):
        source, keep_steps = ROUTES[route](frame, tmp_path)
        notes = read(source, keep_steps=keep_steps, episode="run").notes
        assert notes == (
            "2 of 3 episodes have a single period (first of id 1): their decisions count, but no transition is "
            "observed.",
        )


# --------------------------------------------------------------------------------------------------- trips with goals


TRIPS = pd.DataFrame({
    "bus": "ann", "month": [1, 2, 5, 6], "x": ["a", "b", "a", "c"], "d": 0, "goal": ["e", "e", "e", "e"],
    "next": ["b", None, "c", "e"], "leg": [1, 1, 2, 2],
})  # fmt: skip


def test_a_gap_on_the_way_to_one_goal_may_lie_within_a_trip_or_between_two():
    with pytest.raises(
        InvalidDemonstrations,
        match=r"id 'ann' has no row between times 2 and 5 on the way to 'e'.*episode=\"bus\"; else",
    ):
        rv.Demonstrations.from_frame(TRIPS, **NAMES, goal="goal")
    one, two = (rv.Demonstrations.from_frame(TRIPS, **NAMES, goal="goal", episode=e) for e in ("bus", "leg"))
    assert (one.origins.size, two.origins.size) == (1, 2)
    assert "1 gap in time" in one.notes[0]
    assert not any("gap" in note for note in two.notes)


def test_another_goal_or_an_arrival_before_a_gap_tells_trips_apart():
    other = rv.Demonstrations.from_frame(TRIPS.assign(goal=["f", "f", "e", "e"]), **NAMES, goal="goal")
    seen = rv.Demonstrations.from_frame(
        TRIPS.assign(next=["b", "e", "c", "e"]), **NAMES, goal="goal", next_state="next", gaps="error"
    )
    for demos in (other, seen):
        assert demos.origins.size == 2
        assert demos.starts.sum() == 2.0


# --------------------------------------------------------------------------------------------------------- late entry


def entering(ages: Any) -> pd.DataFrame:
    """Everybody's first rows are missing until the age of entry; states are those of a horizon."""
    mdp = machine().unroll(LENGTH)
    frame = simulated(mdp, len(ages)).to_frame(id="bus", time="month", state="x", action="d")
    states = frame["x"].map(lambda label: label[1] if isinstance(label, tuple) else label % S)
    frame = frame.assign(x=states, month=frame["month"] + 18)
    return frame[frame["month"] >= 18 + np.asarray(ages)[frame["bus"]]]


LATE = np.arange(AGENTS) % 20


def test_late_entry_on_a_horizon_is_never_guessed():
    """Said which time is 0, the truth comes back; read as individual clocks it does not, and unsaid nothing does."""
    frame, horizon = entering(LATE), machine().unroll(LENGTH)
    with pytest.raises(InvalidDemonstrations) as caught:
        rv.NFXP(reward()).fit(horizon, read(frame))
    told = str(caught.value)
    assert "id 0 enters at 18, id 1 at 19" in told
    assert "first_time=18 or an earlier one" in told
    assert 'first_time="own"' in told
    right = rv.NFXP(reward()).fit(horizon, read(frame, first_time=18))
    assert np.all(np.abs(right.theta - TRUTH) < 4.0 * right.bse)
    later = rv.NFXP(reward()).fit(horizon, read(frame).lift(horizon, first_time=18))
    np.testing.assert_array_equal(later.theta, right.theta)
    wrong = rv.NFXP(reward()).fit(horizon, read(frame, first_time="own"))
    assert np.any(np.abs(wrong.theta - right.theta) > 2.0 * right.bse)  # which reading it is matters
    np.testing.assert_array_equal(wrong.theta, rv.NFXP(reward()).fit(horizon, read(frame).lift(horizon, "own")).theta)


def test_where_all_enter_together_nothing_is_asked():
    frame, horizon = entering(np.full(40, 3)), machine().unroll(LENGTH)
    np.testing.assert_array_equal(read(frame).lift(horizon).counts, read(frame, first_time="own").lift(horizon).counts)
    assert read(entering(LATE[:40])).subset([1, 21]).lift(horizon).n_agents == 2  # those who entered at 19
    assert read(frame).lift(horizon, first_time=18).starts.reshape(-1, S).sum(axis=1)[3] == 40


def test_a_stationary_model_asks_nothing():
    assert rv.CCP(reward(), first_step="smoothed").fit(machine(), read(entering(LATE[:40]))).n_decisions > 0


def test_dates_say_their_period_zero_as_dates():
    frame, horizon = entering(LATE[:40]), machine().unroll(LENGTH)
    want = read(frame, first_time=18).lift(horizon).counts
    month = frame["month"] - 18
    dates = frame.assign(month=pd.to_datetime([f"{2020 + m // 12}-{m % 12 + 1:02d}-17" for m in month]))
    for zero in ("2020-01", "2020-01-05", 202001, pd.Timestamp("2020-01-31"), np.datetime64("2020-01")):
        np.testing.assert_array_equal(read(dates, period="month", first_time=zero).lift(horizon).counts, want)
        np.testing.assert_array_equal(read(dates, period="month").lift(horizon, first_time=zero).counts, want)
    numbers = frame.assign(month=(2020 + month // 12) * 100 + month % 12 + 1)
    np.testing.assert_array_equal(read(numbers, period="month", first_time=202001).lift(horizon).counts, want)
    with pytest.raises(InvalidDemonstrations, match=r"id 0 enters at 2020-01-17.*\"2020-01-17\" or an earlier one"):
        read(dates, period="month").lift(horizon)
    with pytest.raises(InvalidInput, match="period="):
        read(dates, first_time="2020-01")
    with pytest.raises(InvalidDemonstrations, match=r"with period="):
        read(dates).lift(horizon)


@pytest.mark.parametrize("zero", ["18", "today", 19, 17.5, True, None], ids=repr)
def test_a_first_time_that_is_none_is_refused(zero):
    frame, horizon = entering(LATE[:40]), machine().unroll(LENGTH)
    with pytest.raises(InvalidInput, match=r"`first_time`(: expected| is required)"):
        read(frame, first_time=zero).lift(horizon)


def test_times_that_are_not_whole_count_no_periods():
    """Also where those of entry happen to be whole: rows are counted, and nothing says how far apart they are."""
    frame = pd.DataFrame({"bus": [1, 1, 2, 2], "month": [18.0, 18.5, 20.0, 20.7], "x": 0, "d": 0})
    demos, horizon = read(frame), machine().unroll(4)
    for zero in (18, 18.0, None):
        with pytest.raises(InvalidInput, match="`first_time`"):
            demos.lift(horizon, first_time=zero)
    with pytest.raises(InvalidInput, match="`first_time`"):
        read(frame, first_time=18)
    assert demos.lift(horizon, first_time="own").counts.sum() == 4.0


def test_trajectories_without_times_begin_at_period_zero():
    given = rv.Demonstrations.from_trajectories([([0, 1], [0, 0]), ([2], [1])], S, 2)
    horizon = machine().unroll(3)
    np.testing.assert_array_equal(given.lift(horizon).counts, given.lift(horizon, first_time="own").counts)
    np.testing.assert_array_equal(given.lift(horizon).starts[:S], given.starts)
    with pytest.raises(InvalidInput, match=r"`first_time` cannot be given: periods already count from 0"):
        given.lift(horizon, first_time=3)


def test_a_saved_fit_still_knows_when_ids_entered(tmp_path):
    frame = entering(LATE[:40])
    fit = rv.CCP(reward(), first_step="smoothed").fit(machine(), read(frame))
    loaded = rv.load(fit.save(tmp_path / "fit.zip") or tmp_path / "fit.zip").demonstrations
    horizon = machine().unroll(LENGTH)
    with pytest.raises(InvalidDemonstrations, match="id 1 at 19"):
        loaded.lift(horizon)
    np.testing.assert_array_equal(
        loaded.lift(horizon, first_time=18).counts, read(frame, first_time=18).lift(horizon).counts
    )


def test_the_command_line_asks_and_keeps_the_answer(tmp_path):
    panel, out = tmp_path / "panel.csv", tmp_path / "out"
    entering(LATE[:60]).to_csv(panel, index=False)
    words = [*WORDS, "--method", "ccp", "--unseen", "stay"]
    words += ["--first-step", "smoothed", "--horizon", str(LENGTH)]
    run = lambda *more: CliRunner().invoke(app, [*more])  # noqa: E731
    asked = run("fit", str(panel), *words)
    assert asked.exit_code == 1
    said = " ".join(asked.output.split())
    assert "id 1 at 19" in said
    assert "--first-time 18" in said
    assert "--first-time own" in said
    done = run("fit", str(panel), *words, "--first-time", "18", "--out", str(out))
    assert done.exit_code == 0, done.output
    assert "first-time = 18\n" in (out / "config.toml").read_text()
    fit = rv.load(out)
    base = read(panel, first_time=18).lift(machine().unroll(LENGTH))
    in_periods = [demos.counts.reshape(LENGTH + 1, -1).sum(axis=1) for demos in (fit.demonstrations, base)]
    np.testing.assert_array_equal(*in_periods)
    drawn = run("simulate", str(out), "--n", "50", "--length", "30", "--out", str(tmp_path / "more.csv"))
    assert drawn.exit_code == 0, drawn.output
    more = pd.read_csv(tmp_path / "more.csv")
    assert more.groupby("bus")["month"].min().nunique() > 3  # they enter late, as the data did
    again = run("fit", str(tmp_path / "more.csv"), "--config", str(out / "config.toml"))
    assert again.exit_code == 0, again.output
    alone = run("fit", str(panel), *words[:-2], "--first-time", "18")
    assert alone.exit_code == 1
    assert "--horizon" in alone.output


def test_a_fit_on_the_base_model_starts_on_a_horizon_when_its_ids_entered():
    horizon, frame = machine().unroll(LENGTH), entering(LATE[:60])
    demos = read(frame, first_time=18)
    fit = rv.CCP(reward(), first_step="smoothed").fit(machine(), demos)
    truth = reward().value(TRUTH)
    own, same = rv.evaluate(fit, horizon, truth), rv.evaluate(fit, horizon, truth, demos)
    assert own.starts == same.starts == "where the data started"
    assert own.initial is not None
    assert same.initial is not None
    np.testing.assert_allclose(own.initial, same.initial)
    assert own["stochastic_evd"] == same["stochastic_evd"]
    np.testing.assert_allclose(fit.counterfactual(mdp=horizon).after.start, same.initial)
    assert (np.asarray(same.initial).reshape(LENGTH + 1, S).sum(axis=1) > 0.0).sum() > 3
    unsaid = rv.CCP(reward(), first_step="smoothed").fit(machine(), read(frame))
    for ask in (lambda: rv.evaluate(unsaid, horizon, truth), lambda: unsaid.counterfactual(mdp=horizon)):
        with pytest.raises(InvalidDemonstrations, match=r"first_time.*id 1 enters? at 19|id 1 at 19"):
            ask()
    short = rv.evaluate(fit, machine().unroll(3), truth)  # most enter after its end
    assert short.starts == "uniform over the non-terminal states"


@pytest.mark.parametrize(
    "zero",
    [
        pd.Timestamp("2020-01-01", tz="UTC"),
        pd.Timestamp("2020-01-01 00:30", tz="Europe/Berlin"),
        dt.datetime(2019, 12, 31, 20, tzinfo=dt.timezone(dt.timedelta(hours=-5))),
        "2020-01-01T00:30:00+01:00",
        "2020-01",
    ],
    ids=str,
)
def test_a_first_time_with_a_zone_is_one_of_utc(zero, recwarn):
    """As the times of the data are."""
    late = zero if isinstance(zero, str) and len(zero) == 7 else pd.Timestamp(zero).tz_convert("UTC").strftime("%Y-%m")
    when = pd.to_datetime(["2020-02-01", "2020-03-01", "2020-03-01", "2020-04-01"], utc=True)
    table = pd.DataFrame({"bus": [1, 1, 2, 2], "month": when, "x": [0, 1, 0, 1], "d": 0})
    read: Any = rv.Demonstrations.from_frame(table, **NAMES, period="month", first_time=zero)
    gap = {"2019-12": 1, "2020-01": 0}[late]
    assert read.steps.time.tolist() == [1 + gap, 2 + gap, 2 + gap, 3 + gap]
    assert not recwarn.list
