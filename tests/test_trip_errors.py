"""A trip is one observation: what counts as one in BIC, in sandwiches and in clusters where trips have goals."""

import json
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import revealed as rv
from networks import random_trips
from shell import here

NAMES = ["travel_time", "left_turn", "u_turn", "constant"]
TASTES = np.array([-2.0, -0.5, -2.5, -1.0])
TRIPS = 6  # of each traveller


@cache
def roads() -> rv.RoadNetwork:
    return rv.environments.city(100, seed=1).network


def driven(seed: int, travellers: int = 40, apart: float = 0.0) -> pd.DataFrame:
    """Trips of travellers of two kinds, who mind time more or less than the mean by a share `apart`."""
    network, rng, parts = roads(), np.random.default_rng(seed), []
    for kind, sign in enumerate((-1.0, 1.0)):
        own = TASTES * np.array([1.0 + sign * apart, 1.0, 1.0, 1.0])
        model = rv.RouteChoice(network, network.reward(NAMES), own)
        n = travellers * TRIPS // 2
        ends = rng.choice(network.n_links, 5, replace=False)
        begins, goals = rng.choice(network.n_links, 3 * n), rng.choice(ends, 3 * n)
        pairs = [(int(o), int(d)) for o, d in zip(begins, goals, strict=True) if o != d]
        demand = pd.DataFrame(pairs[:n], columns=["o", "d"])
        demand = demand.assign(origin=[network.links[k] for k in demand["o"]])
        demand = demand.assign(destination=[network.links[k] for k in demand["d"]], trips=1)
        drawn = model.simulate(demand[["origin", "destination", "trips"]], seed=seed)
        frame = drawn.to_frame("trip", "t", "link", next_state="next")
        parts.append(frame.assign(trip=frame["trip"] + kind * n))
    frame = pd.concat(parts)
    last = frame.groupby("trip").tail(1)
    arrived = last.assign(t=last["t"] + 1, link=last["next"])
    frame = pd.concat([frame, arrived])
    frame["person"] = frame["trip"] // TRIPS
    frame["town"] = "t" + (frame["person"] % 7).astype(str)
    return frame[["trip", "t", "link", "person", "town"]]


def read(frame: pd.DataFrame, **columns: Any) -> rv.Demonstrations:
    return roads().trips(frame, trip="trip", sequence="t", link="link", **columns)


def fit_to(demos: rv.Demonstrations) -> rv.GoalFit:
    return rv.NFXP(roads().reward(NAMES)).fit(roads().mdp, demos)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return driven(0)


def test_observations_and_bic_count_trips(frame):
    fit = fit_to(read(frame))
    n = frame["trip"].nunique()
    assert fit.nobs == n < fit.n_decisions == round(fit.demonstrations.n_decisions)
    assert fit.bic == pytest.approx(np.log(n) * 4 - 2.0 * fit.llf, rel=1e-12)
    text = " ".join(str(fit.summary()).split())
    assert f"Trips: {n}" in text
    assert f"Decisions: {fit.n_decisions}" in text


def test_trips_that_count_twice_are_two_observations(frame):
    demos = read(frame)
    twice = fit_to(demos.reweighted(np.full(demos.n_agents, 2.0)))
    once = fit_to(demos)
    assert twice.nobs == 2 * once.nobs
    np.testing.assert_allclose(twice.covariance("robust"), once.covariance("robust") / 2.0, rtol=1e-6)
    np.testing.assert_allclose(twice.covariance("opg"), once.covariance("opg") / 2.0, rtol=1e-6)


def test_the_default_clusters_by_trip_or_by_traveller(frame):
    alone, owned = fit_to(read(frame)), fit_to(read(frame, traveller="person"))
    assert alone.errors == owned.errors == ("cluster", False)
    N = frame["trip"].nunique()
    # one cluster a trip: the sandwich of trips, but for N/(N − 1)
    np.testing.assert_allclose(alone.covariance(), alone.covariance("robust") * N / (N - 1), rtol=1e-6)
    np.testing.assert_allclose(owned.covariance("robust"), alone.covariance("robust"), rtol=1e-6)
    assert np.abs(owned.covariance() / alone.covariance() - 1.0).max() > 1e-3
    assert "cluster by trip (240)" in str(alone.summary())
    assert "cluster by traveller (40)" in str(owned.summary())
    assert "Travellers" in str(owned.summary())


def test_one_traveller_leaves_the_sandwich_of_trips(frame):
    demos = read(frame.assign(person="ann"), traveller="person")
    fit = fit_to(demos)
    assert fit.errors == ("robust", False)
    assert "sandwich over trips" in str(fit.summary())
    assert np.isfinite(fit.bse).all()


def test_a_reward_without_scores_keeps_its_hessian():
    made = random_trips(1, S=12, n=60)
    network = rv.NeuralReward(made.features, hidden=(2,), seed=0, activation="tanh")
    fit = rv.NFXP(network, l2=1e-2, max_iter=3, optimizer="lbfgs").fit(made.mdp, made.demos)
    assert fit.errors == ("hessian", False)


def test_default_errors_match_the_spread_where_travellers_differ():
    """Travellers of two kinds, six trips each: clusters know it, the inverse Hessian takes trips for independent."""
    fits = [fit_to(read(driven(seed, travellers=60, apart=0.6), traveller="person")) for seed in range(40)]
    spread = np.std([fit.theta[0] for fit in fits], ddof=1)
    told = np.mean([fit.bse["travel_time"] for fit in fits])
    plain = np.mean([fit.with_errors("hessian").bse["travel_time"] for fit in fits])
    # the standard deviation of forty draws is itself uncertain by 11 %
    assert abs(told / spread - 1.0) < 0.3
    assert abs(told / spread - 1.0) < abs(plain / spread - 1.0)


def test_a_fit_of_trips_with_a_grouping_is_saved_whole(frame, tmp_path):
    fit = fit_to(read(frame, traveller="person", keep="town")).with_errors("cluster", by="town")
    loaded = rv.load(fit.save(tmp_path / "fit"))
    assert loaded.groups is not None
    assert loaded.demonstrations.columns == fit.demonstrations.columns
    np.testing.assert_allclose(loaded.covariance(), fit.covariance(), rtol=1e-9)
    assert "cluster by town (7)" in str(loaded.summary())


def test_a_column_of_trips_must_be_one_of_travellers(frame):
    with pytest.raises(rv.errors.InvalidDemonstrations, match=r"one value of 'trip' per id; got 0 and 1 for id 0"):
        read(frame, traveller="person", keep="trip")
    moved = frame.assign(town=np.where(frame["t"] == 0, "here", "there"))
    with pytest.raises(rv.errors.InvalidDemonstrations, match=r"one value of 'town' per trip"):
        read(moved, keep="town")


def test_trips_of_unequal_weights_are_weighted_sandwiches(frame):
    """A trip counted w times brings w of its score's outer product, as w trips like it would."""
    demos = read(frame)
    w = np.random.default_rng(0).integers(1, 4, demos.n_agents).astype(float)
    fit = fit_to(demos.reweighted(w))
    U = fit.evidence.trip_scores
    U = U - w @ U / w.sum()
    inverse = np.linalg.inv(fit.evidence.bread)
    np.testing.assert_allclose(fit.covariance("robust"), inverse @ (U * w[:, None]).T @ U @ inverse, rtol=1e-9)
    left_out = fit_to(demos.reweighted(np.where(np.arange(demos.n_agents) < 5, 0.0, 1.0)))
    kept = fit_to(demos.subset(range(5, demos.n_agents)))
    assert left_out.nobs == kept.nobs
    np.testing.assert_allclose(left_out.covariance("robust"), kept.covariance("robust"), rtol=1e-5)


def test_discounted_visits_reach_the_trips_scores(frame):
    demos = read(frame).discount_visits(0.9)
    fit = fit_to(demos)
    U = fit.evidence.trip_scores
    total = fit.evidence.weights[:, fit.evidence.seen] @ fit.evidence.scores
    np.testing.assert_allclose(U, total, rtol=1e-9, atol=1e-12)  # each trip is an agent here
    assert replace(fit, chosen=None).errors == ("cluster", False)


def test_the_command_line_clusters_trips_by_a_column(frame, tmp_path):
    links, turns, trips = (tmp_path / f"{name}.csv" for name in ("links", "turns", "trips"))
    for part, file in ((roads().links_frame, links), (roads().turns_frame, turns), (frame, trips)):
        part.to_csv(file, index=False)
    flags = (trips, "--network", links, "--turns", turns, "--sequence", "t", "--columns", ",".join(NAMES))
    done = here("fit", *flags, "--traveller", "person", "--cluster", "town", "--json")
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    own: Any = fit_to(read(frame, traveller="person", keep="town")).with_errors("cluster", by="town")
    assert [row["std_err"] for row in told["params"]] == pytest.approx(own.bse.tolist(), rel=1e-6)
    assert (told["nobs"], told["decisions"]) == (own.nobs, own.n_decisions)
    for name in ("llnull", "llsat", "prsquared", "prsquared_adj", "hit_rate"):
        assert told[name] == pytest.approx(getattr(own, name), rel=1e-6)
    assert told["goodness_of_fit"]["p"] == pytest.approx(list(own.goodness.p), rel=1e-4)
    wrong = here("fit", *flags, "--traveller", "person", "--cluster", "trip")
    assert wrong.exit_code == 1
    assert "`--cluster`: expected one value of 'trip' per id" in wrong.stderr
