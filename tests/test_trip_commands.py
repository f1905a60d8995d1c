"""The commands on trips with goals: what they write is what the library's own calls give, and what they read again."""

import json
import os
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import revealed as rv
from browser import Page
from networks import SQUARES, windy_tables, windy_trips
from revealed.commands.tables import Names
from revealed.commands.trip_questions import without_states
from revealed.commands.trip_tables import trip_panel
from shell import here, one_line, well

CITY = rv.environments.city(100, seed=3)
TRIPS = CITY.demonstrate(150, seed=4, destinations=12)
COLUMNS = ("travel_time", "u_turn", "constant")
ROADS = ("trips.csv", "--network", "links.csv", "--turns", "turns.csv", "--columns", ",".join(COLUMNS))
WINDY = windy_trips(0.9, n=80, side=3)
PANEL = ("panel.csv", "--id", "who", "--time", "t", "--state", "square", "--action", "move", "--next-state", "after")
PANEL += ("--goal", "goal", "--features", "pairs.csv", "--discount", "0.9")


def complaint(*arguments: object) -> str:
    """One line on standard error, and exit status 1."""
    done = here(*arguments)
    assert done.exit_code == 1
    return one_line(done).removeprefix("revealed: ")


def write_files() -> None:
    links, turns = CITY.network.to_frame()
    links.to_csv("links.csv", index=False)
    turns.to_csv("turns.csv", index=False)
    fit = rv.NFXP(CITY.reward).fit(CITY.mdp, TRIPS)
    trip_panel(fit, TRIPS, Names(network="links.csv")).to_csv("trips.csv", index=False)
    walks, pairs = windy_tables(WINDY)
    walks.to_csv("panel.csv", index=False)
    pairs.to_csv("pairs.csv", index=False)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder of files, and of the fits that the command made of them."""
    folder = tmp_path_factory.mktemp("data")
    with chdir(folder):
        write_files()
        (folder / "said.txt").write_text(well("fit", *ROADS, "--out", "roads"), encoding="utf-8")
        well("fit", *PANEL, "--out", "windy")
    return folder


@pytest.fixture(autouse=True)
def inside(data, monkeypatch):
    monkeypatch.chdir(data)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture(scope="module")
def own(data) -> Any:
    network = rv.RoadNetwork.from_frame(data / "links.csv", turns=data / "turns.csv")
    return rv.NFXP(network.reward(list(COLUMNS))).fit(network.mdp, network.trips(data / "trips.csv"))


# ---------------------------------------------------------------------------------------------------------------- fit


def test_the_folder_holds_what_makes_sense_with_goals(own):
    names = {
        "config.toml",
        "fit.zip",
        "flows.csv",
        "history.csv",
        "params.csv",
        "report.html",
        "summary.txt",
        "trips.csv",
    }
    assert set(os.listdir("roads")) == names
    said = " ".join(Path("said.txt").read_text(encoding="utf-8").split())
    for told in ("Trips: 150", "Goals: 12", "cluster by trip (150)"):
        assert told in said
    assert said.endswith("Wrote roads/report.html; also params.csv, flows.csv, trips.csv and fit.zip there.")
    params = pd.read_csv("roads/params.csv", index_col="parameter", engine="python")
    np.testing.assert_array_equal(params["coef"], own.params)
    np.testing.assert_array_equal(params["std_err"], own.bse)


def test_tables_have_the_use_of_links_and_the_likelihood_of_trips(own):
    flows = pd.read_csv("roads/flows.csv", index_col="link")
    np.testing.assert_allclose(flows[["observed", "expected"]], own.flows(), rtol=1e-9)
    table = pd.read_csv("roads/trips.csv", index_col="trip")
    np.testing.assert_allclose(table["log_likelihood"], own.log_likelihood_by_trip(), rtol=1e-9)
    assert table["log_likelihood"].sum() == pytest.approx(own.llf)
    names = np.array(own.state_labels, dtype=object)
    np.testing.assert_array_equal(table["from_link"], names[own.demonstrations.origins])
    np.testing.assert_array_equal(table["to_link"], names[own.demonstrations.destinations])
    assert table["decisions"].sum() == own.n_decisions


def test_the_report_shows_the_map_of_the_network():
    page = Page(Path("roads/report.html").read_text(encoding="utf-8"))
    assert "could not be made" not in page.text()
    assert any(image["alt"].startswith(f"Two maps of {CITY.network.n_links} links") for image in page.all("img"))


def test_the_run_repeats_itself_and_loads(own):
    well("fit", "--config", "roads/config.toml", "--out", "again")
    assert Path("again/params.csv").read_text(encoding="utf-8") == Path("roads/params.csv").read_text(encoding="utf-8")
    assert rv.load("again").llf == own.llf


def test_programs_get_trips_and_goals():
    found = json.loads(well("fit", *ROADS, "--json"))
    assert (found["trips"], found["goals"], found["discount"]) == (150, 12, 1.0)


def test_bad_trips_are_left_out_and_told(own):
    bad = pd.DataFrame({"trip": ["bad", "bad"], "sequence": [0, 1], "link": [own.state_labels[0], "nowhere"]})
    pd.concat([pd.read_csv("trips.csv"), bad]).to_csv("some-bad.csv", index=False)
    assert complaint("fit", "some-bad.csv", *ROADS[1:]).endswith("Or leave such trips out: --bad-trips drop.")
    said = well("fit", "some-bad.csv", *ROADS[1:], "--bad-trips", "drop", "--out", "dropped")
    note = "Note: 1 trip was left out (first 'bad'): a link is not in the network."
    assert note in " ".join(said.split())
    assert rv.load("dropped").llf == pytest.approx(own.llf, rel=1e-12)
    assert 'bad-trips = "drop"' in Path("dropped/config.toml").read_text(encoding="utf-8")


def test_a_goal_column_of_a_panel_is_a_goal():
    fit = rv.load("windy")
    assert isinstance(fit, rv.GoalFit)
    assert set(fit.goals) == {SQUARES[g] for g in WINDY.goal_states}
    assert list(pd.read_csv("windy/trips.csv").columns) == [
        "who",
        "from_square",
        "to_square",
        "decisions",
        "log_likelihood",
    ]
    # moves are estimated from the panel
    demos = rv.Demonstrations.from_frame(
        "panel.csv", id="who", time="t", state="square", action="move", next_state="after", goal="goal"
    )
    mdp = rv.MDP(rv.estimate_transitions(demos, unseen="infeasible"), discount=0.9)
    reward = rv.LinearReward.from_frame("pairs.csv", state="square", action="move")
    np.testing.assert_array_equal(fit.theta, rv.NFXP(reward).fit(mdp, demos).theta)


def test_methods_are_compared_without_advice():
    said = " ".join(well("compare", *ROADS).split())
    assert "NFXP CCP NPL" in said
    assert "First step logit logit" in said
    assert "No recommendation for trips with goals: use NFXP, which shares computations across goals" in said


# ------------------------------------------------------------------------------------------------------------ predict


def test_predictions_are_toward_a_goal(own):
    goal, out = own.goals[3], "toward.csv"
    well("predict", "roads", "--goal", goal, "--out", out)
    table, policy = pd.read_csv(out), own.policy_for(goal)
    s, a = np.nonzero(policy)
    names = np.array(own.state_labels, dtype=object)
    np.testing.assert_array_equal(table["link"], names[s])
    np.testing.assert_array_equal(table["next_link"], names[own.mdp.targets[s, a]])
    np.testing.assert_allclose(table["probability"], policy[s, a], rtol=1e-9)
    best = json.loads(well("predict", "roads", "--goal", goal, "--state", names[s[0]], "--deterministic", "--json"))
    assert best["choices"][0]["probability"] == pytest.approx(policy[s[0]].max())
    assert best["goal"] == str(goal)


def test_actions_with_names_have_a_column_each():
    fit = rv.load("windy")
    goal = fit.goals[0]
    row = next(square for square in SQUARES if square != goal)
    found = json.loads(well("predict", "windy", "--goal", goal, "--state", row, "--json"))["choices"][0]
    np.testing.assert_allclose([found[m] for m in fit.action_labels], fit.policy_for(goal)[fit.state_labels.index(row)])


# ----------------------------------------------------------------------------------------------------------- simulate


def test_simulated_trips_are_read_again(own):
    assert well("simulate", "roads", "--n", 40, "--seed", 7, "--out", "simulated.csv").endswith("to simulated.csv.\n")
    drawn = own.simulate(40, seed=7)
    network = rv.RoadNetwork.from_frame("links.csv", turns="turns.csv")
    again = network.trips("simulated.csv")
    for name in ("state", "action", "next_state", "goal", "first"):
        np.testing.assert_array_equal(getattr(again.steps, name), getattr(drawn.steps, name))
    well("fit", "simulated.csv", "--config", "roads/config.toml")


def test_simulated_decisions_carry_their_goals():
    well("simulate", "windy", "--n", 30, "--seed", 7, "--out", "walks.csv")
    assert list(pd.read_csv("walks.csv").columns) == ["who", "t", "square", "move", "after", "goal"]
    well("fit", "walks.csv", "--config", "windy/config.toml")


def test_trips_between_two_places(own):
    start, end = (own.state_labels[at[0]] for at in (own.demonstrations.origins, own.demonstrations.destinations))
    found = json.loads(well("simulate", "roads", "--n", 3, "--initial", start, "--goal", end, "--json"))
    paths = pd.DataFrame(found["panel"]).groupby("trip")["link"]
    assert set(paths.first()) == {start}
    assert set(paths.last()) == {end}


def test_trips_to_one_goal_begin_where_those_observed_did(own):
    """The origins of its own trips; of a goal that nobody had, all origins that can get there."""
    demos, names = own.demonstrations, np.array(own.state_labels, dtype=object)
    end = int(own.goal_states[2])
    paths = simulated_paths("--goal", names[end], "--n", 200)
    assert set(paths.last()) == {names[end]}
    assert set(paths.first()) == set(names[demos.origins[demos.destinations == end]])
    new = next(s for s in range(own.mdp.n_states) if s not in own.goal_states and np.isfinite(own.value_for(s)).all())
    paths = simulated_paths("--goal", names[new], "--n", 30)
    assert set(paths.last()) == {names[new]}
    assert set(paths.first()) <= set(names[demos.origins])
    assert len(set(paths.first())) > 10


def test_trips_from_one_place_go_where_those_observed_went(own):
    demos, names = own.demonstrations, np.array(own.state_labels, dtype=object)
    start = int(demos.origins[0])
    paths = simulated_paths("--initial", names[start], "--n", 50)
    assert set(paths.first()) == {names[start]}
    assert set(paths.last()) == set(names[demos.destinations[demos.origins == start]])


def simulated_paths(*words: object):
    found = json.loads(well("simulate", "roads", *words, "--json"))
    return pd.DataFrame(found["panel"]).groupby("trip")["link"]


def test_panels_without_a_next_state_get_one(own):
    """Arrivals show nowhere else: without them the goals of a refit would be out of reach."""
    words = [word for word in PANEL if word not in ("--next-state", "after")]
    well("fit", *words, "--out", "no-next")
    well("simulate", "no-next", "--n", 30, "--seed", 7, "--out", "walks-too.csv")
    table = pd.read_csv("walks-too.csv")
    assert list(table.columns) == ["who", "t", "square", "move", "next_square", "goal"]
    last = table.groupby("who").last()
    assert (last["next_square"] == last["goal"]).all()
    well("fit", "walks-too.csv", "--config", "no-next/config.toml", "--out", "once-more")
    seen = rv.load("once-more").demonstrations
    assert seen.transition_counts.sum() == len(table)


# ----------------------------------------------------------------------------------------------------- counterfactual


def test_a_link_is_closed_as_the_network_closes_it(own):
    busiest = own.state_labels[int(own.flows()["expected"].to_numpy().argmax())]
    network = rv.RoadNetwork.from_frame("links.csv", turns="turns.csv")
    answer = own.counterfactual(mdp=network.without([busiest]).mdp)
    said = json.loads(well("counterfactual", "roads", "--close", busiest, "--json", "--out", "closed"))
    assert said["change"] == f"{busiest} closed"
    table = pd.DataFrame(said["table"]).set_index("quantity")
    np.testing.assert_allclose(table["change"].astype(float), answer.table()["change"], rtol=1e-6, atol=1e-12)
    flows = pd.read_csv("closed/flows.csv", index_col="link")
    np.testing.assert_allclose(flows["after"], answer.after.visits, rtol=1e-6, atol=1e-9)
    assert (pd.read_csv("closed/welfare.csv")["change"] <= 1e-12).all()
    assert sorted(os.listdir("closed")) == ["counterfactual.html", "flows.csv", "table.csv", "welfare.csv"]


def test_closing_states_equals_the_network_without_them():
    network = CITY.network.without([CITY.network.links[5], CITY.network.links[9]])
    mdp = without_states(CITY.mdp, np.array([5, 9]))
    np.testing.assert_array_equal(mdp.feasible, network.mdp.feasible)
    np.testing.assert_array_equal(mdp.terminal, network.mdp.terminal)


def test_an_attribute_changes_on_some_links(own):
    network = rv.RoadNetwork.from_frame("links.csv", turns="turns.csv")
    some = [network.links[k] for k in (2, 7)]
    minutes = {link: 3.0 * network.link_values["travel_time"][network.index(link)] for link in some}
    reward = network.with_attribute("travel_time", minutes).reward(list(COLUMNS))
    answer = own.counterfactual(reward=reward, bands=None)
    words = ("--attribute", "travel_time*3", "--links", ",".join(map(str, some)), "--bands", "none")
    said = json.loads(well("counterfactual", "roads", *words, "--json"))
    assert said["change"] == f"travel_time*3 on {some[0]}, {some[1]}"
    assert said["table"][0]["after"] == pytest.approx(answer.after.welfare, rel=1e-9)


def test_an_attribute_that_changes_everywhere_is_none_of_arriving():
    well("fit", *ROADS, "--arrivals", "--out", "arriving")
    fit = rv.load("arriving")
    network = rv.RoadNetwork.from_frame("links.csv", turns="turns.csv")
    network = network.with_arrivals(np.unique(pd.read_csv("trips.csv").groupby("trip")["link"].last()).tolist())
    assert network.links == fit.state_labels
    reward = network.with_attribute("travel_time", 2.0).reward(list(COLUMNS))
    answer = fit.counterfactual(reward=reward, bands=None)
    words = ("--attribute", "travel_time=2", "--bands", "none", "--json")
    said = json.loads(well("counterfactual", "arriving", *words))["table"]
    assert [row["after"] for row in said] == pytest.approx(answer.table()["after"].tolist(), rel=1e-9, abs=1e-9)


def test_parameters_change_as_without_goals(own):
    answer = own.counterfactual(params={"travel_time": lambda value: 2.0 * value})
    said = json.loads(well("counterfactual", "roads", "--set", "travel_time*2", "--json"))
    assert said["change"] == answer.words
    assert said["table"][0]["lower"] == pytest.approx(answer.change.lower.welfare, rel=1e-6)


# ----------------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("predict", "roads"),
            "`--goal` is required: choices depend on the destination. For example: --goal ",
        ),
        (("predict", "roads", "--goal", "elsewhere"), "`--goal`: expected one of "),
        (
            ("simulate", "roads", "--length", "5"),
            "`--length` has no effect on a road network: trips end at their last link.",
        ),
        (("counterfactual", "roads"), "`counterfactual` requires at least one change. For example: --close"),
        (
            ("counterfactual", "roads", "--links", "5"),
            "`--links` requires `--attribute`.",
        ),
        (
            ("counterfactual", "roads", "--attribute", "toll"),
            "`--attribute`: expected one of travel_time, u_turn, constant, with its new value, as in travel_time=12",
        ),
        (
            ("counterfactual", "roads", "--attribute", "u_turn"),
            "`--attribute`: expected a feature and its new value, as in u_turn=12 or u_turn*1.2; got 'u_turn'.",
        ),
        (
            ("counterfactual", "roads", "--attribute", "toll=2"),
            "`--attribute`: expected one of travel_time, u_turn",
        ),
        (
            ("fit", *ROADS, "--id", "x"),
            "`--id` does not apply to a road network. Name the column of trips with",
        ),
        (("fit", "trips.csv", "--trip", "trip"), "`--id` is required (column of the decision maker's id)."),
    ],
)
def test_mistakes_are_one_line(arguments, message):
    assert complaint(*arguments).startswith(message)


def test_what_needs_goals_is_refused_without():
    mdp = rv.MDP(np.full((2, 2, 2), 0.5))
    demos = rv.Demonstrations.from_counts([[3, 1], [2, 2]])
    rv.CCP(rv.LinearReward(np.eye(2)[:, :, None]), l2=0.1).fit(mdp, demos).save("plain.zip")
    message = "requires a fit of trips with goals."
    assert complaint("predict", "plain.zip", "--goal", "0") == f"`--goal` {message}"
    assert complaint("simulate", "plain.zip", "--goal", "0") == f"`--goal` {message}"
    assert complaint("counterfactual", "plain.zip", "--close", "0") == f"`--close` {message}"
