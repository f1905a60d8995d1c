"""Every option of every command has an effect, or is refused with the rule that it breaks.

`TABLE` has a line for each option of each command, found by introspection: what is typed beside it where it works, and,
where there is such a thing, beside which options it would do nothing and what is said of that. A new option without a
line fails.
"""

from __future__ import annotations

import shlex
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import typer

import trips as files
from revealed import cli
from roads import links, nodes, town, trip_table
from shell import here, leave_out_reports, one_line, quickly_in, well

PANEL = "trips.csv --id rider --time t --state station --action choice"
LINEAR = f"{PANEL} --features stations.csv --columns shops"
TABULAR = f"{PANEL} --reward tabular"
NEURAL = f"{PANEL} --features stations.csv --reward neural"
GIVEN = f"{TABULAR} --transitions moves.csv"
GOALS = "goals.csv --id rider --time t --state station --action choice --goal to --reward tabular --discount 1"
ROADS = "journeys.csv --network links.csv"
TURNS = "journeys.csv --turns turns.csv"

ALWAYS: dict[str, str] = {}  # nothing takes its effect away


@dataclass
class Line:
    """What an option is typed as; beside what it works; beside what it does not, and what is then said."""

    typed: str
    works: tuple[str, ...]
    idle: dict[str, str] = field(default_factory=dict)


def needs_roads(typed: str, works: str = ROADS) -> Line:
    name = typed.split()[0].replace("--no-", "--")
    return Line(typed, (works,), {TABULAR: f"`{name}` requires a road network: `--network FILE`."})


def no_roads(typed: str, *works: str, idle: dict[str, str] = ALWAYS, why: str = "") -> Line:
    name = typed.split()[0]
    no = f"`{name}` does not apply to a road network."
    return Line(typed, works or (TABULAR,), idle | {ROADS: f"{no} {why}".rstrip()})


RUN: dict[str, Line] = {
    "panel": Line("", (TABULAR, ROADS)),
    "id": no_roads("--id rider", why="Name the column of trips with --trip."),
    "time": no_roads("--time t", why="Name the column of their order with --sequence."),
    "state": no_roads(
        "--state station", TABULAR.replace("--state station", ""), why="Name the column of links with --link."
    ),
    "action": no_roads("--action choice", TABULAR.replace("--action choice", ""), why="The action is the next link."),
    "next_state": no_roads("--next-state to", f"ended{TABULAR.removeprefix('trips')} --terminal zoo"),
    "weight": no_roads("--weight t"),
    "period": no_roads(
        "--period month",
        "buses.csv --id bus --time month --state decision --action decision --reward tabular",
        idle={TABULAR: "`--period` cannot be 'month': times are not dates."},
    ),
    "gaps": no_roads("--gaps break"),
    "episode": no_roads("--episode rider", why="Each trip is one episode."),
    "bins": no_roads(
        "--bins miles=4",
        "buses.csv --id bus --time month --period month --state miles --action decision",
    ),
    "goal": no_roads("--goal to", GOALS.replace(" --goal to", ""), why="The goal of a trip is its last link."),
    "network": Line("--network links.csv", ("journeys.csv", TURNS)),
    "link": needs_roads("--link link"),
    "from_node": Line(
        "--from-node from", (ROADS,), {TURNS: "`--from-node` requires `--network FILE`: turns alone have no nodes."}
    ),
    "to_node": Line(
        "--to-node to", (ROADS,), {TURNS: "`--to-node` requires `--network FILE`: turns alone have no nodes."}
    ),
    "turns": Line("--turns turns.csv", (ROADS, "journeys.csv")),
    "turn_from": Line(
        "--turn-from from_link",
        (TURNS, f"{ROADS} --turns turns.csv"),
        {ROADS: "`--turn-from` requires `--turns FILE`."},
    ),
    "turn_to": Line(
        "--turn-to to_link", (TURNS, f"{ROADS} --turns turns.csv"), {ROADS: "`--turn-to` requires `--turns FILE`."}
    ),
    "nodes": Line(
        "--nodes nodes.csv",
        (ROADS,),
        {
            TURNS: "`--nodes` requires `--network FILE`: turns alone have no nodes.",
            f"{TURNS} --network bare.csv": "`--nodes` requires links with the nodes where they start and end. "
            "Name their columns with --from-node and --to-node.",
        },
    ),
    "u_turns": Line(
        "--no-u-turns",
        (f"{ROADS} --bad-trips drop",),
        {
            TURNS: "`--u-turns` requires `--network FILE`: turns alone have no nodes.",
            f"{TURNS} --network bare.csv": "`--u-turns` requires links with the nodes where they start and end. "
            "Name their columns with --from-node and --to-node.",
        },
    ),
    "arrivals": needs_roads("--arrivals"),
    "trip": needs_roads("--trip trip"),
    "sequence": needs_roads("--sequence sequence"),
    "trip_link": needs_roads("--trip-link link"),
    "traveller": needs_roads("--traveller trip"),
    "bad_trips": needs_roads("--bad-trips error"),
    "features": no_roads(
        "--features stations.csv",
        PANEL,
        TABULAR,  # whole numbers that it lists are names of states
        why="Features are the attributes of links and turns, chosen with --columns.",
    ),
    "feature_state": no_roads(
        "--feature-state station", LINEAR, idle={TABULAR: "`--feature-state` requires `--features FILE`."}
    ),
    "columns": Line(
        "--columns shops",
        (f"{PANEL} --features stations.csv", NEURAL),
        {
            f"{TABULAR} --features stations.csv": "`--columns` cannot be combined with `--reward tabular`, "
            "which has one weight per state.",
            f"{ROADS} --reward tabular": "`--columns` cannot be combined with `--reward tabular`, "
            "which has one weight per link.",
            f"{PANEL} --constants": "`--columns` requires `--features` or `--bins`.",
        },
    ),
    "constants": no_roads(
        "--constants",
        LINEAR,
        PANEL,
        idle={
            TABULAR: "`--constants` requires a linear reward, not `--reward tabular`.",
            NEURAL: "`--constants` requires a linear reward, not `--reward neural`.",
        },
    ),
    "coordinates": no_roads(
        "--coordinates x,y",
        f"{PANEL} --features stations.csv",
        f"{TABULAR} --features stations.csv --kernel 1",
        idle={TABULAR: "`--coordinates` requires `--features FILE`, whose columns they are."},
        why="Node coordinates come from --nodes, or from columns x_from, y_from, x_to, y_to of the links.",
    ),
    "reward": Line("--reward tabular", (PANEL, ROADS)),
    "hidden": Line("--hidden 32", (NEURAL,), dict.fromkeys((LINEAR, ROADS), "`--hidden` requires `--reward neural`.")),
    "activation": Line(
        "--activation tanh", (NEURAL,), dict.fromkeys((LINEAR, ROADS), "`--activation` requires `--reward neural`.")
    ),
    "discount": Line(
        "--discount 0.9",
        (TABULAR,),
        {ROADS: "`--discount` must be 1 on a road network, not 0.9, because trips end at their destination."},
    ),
    "transitions": no_roads("--transitions moves.csv"),
    "probability": no_roads(
        "--probability probability", GIVEN, idle={TABULAR: "`--probability` requires `--transitions FILE`."}
    ),
    "smoothing": no_roads(
        "--smoothing 1",
        idle={
            GIVEN: "`--smoothing` cannot be combined with `--transitions`: it smooths transitions that are estimated.",
            f"{LINEAR} --coordinates x,y --kernel 1": "`--kernel` cannot be combined with `--smoothing`.",
        },
    ),
    "kernel": no_roads(
        "--kernel 1",
        f"{TABULAR} --features stations.csv --coordinates x,y",
        idle={
            GIVEN: "`--kernel` cannot be combined with `--transitions`: it smooths transitions that are estimated.",
            TABULAR: "`--kernel` requires `--coordinates x,y` with `--features`, or `--bins`. Coordinates are two "
            "columns of the features file; bins have their centres.",
        },
    ),
    "unseen": no_roads(
        "--unseen infeasible",
        idle={GIVEN: "`--unseen` requires estimated transitions (no `--transitions`)."},
    ),
    "terminal": no_roads("--terminal zoo", f"ended{TABULAR.removeprefix('trips')} --next-state to"),
    "horizon": no_roads("--horizon 25", idle={GOALS: "`--horizon` cannot be combined with `--goal`, where trips end."}),
    "first_time": no_roads(
        "--first-time 0",
        f"{TABULAR} --horizon 25",
        idle={TABULAR: "`--first-time` requires `--horizon`, the number of periods."},
    ),
    "method": Line("--method ccp", (TABULAR, ROADS)),
    "updates": Line(
        "--updates 2",
        (f"{TABULAR} --method npl",),
        dict.fromkeys((TABULAR, f"{TABULAR} --method ccp", ROADS), "`--updates` requires `--method npl`."),
    ),
    "first_step": Line(
        "--first-step logit",
        (f"{LINEAR} --method npl", f"{LINEAR} --weighting occupancy", f"{LINEAR} --start ccp"),
        {LINEAR: "`--first-step` requires `--method ccp` or `--method npl`."},
    ),
    "weighting": Line("--weighting sample", (TABULAR, f"{TABULAR} --method ccp")),
    "l2": Line("--l2 1", (TABULAR, ROADS)),
    "tol": Line("--tol 0.1", (TABULAR, ROADS)),
    "max_iter": Line("--max-iter 3", (TABULAR, ROADS)),
    "optimizer": Line("--optimizer lbfgs", (TABULAR, ROADS)),
    "start": Line(
        "--start ccp",
        (TABULAR, f"{TABULAR} --method mce-irl"),
        dict.fromkeys((f"{TABULAR} --method npl", f"{TABULAR} --method ccp"), "`--start` requires `--method nfxp`."),
    ),
    "errors": Line("--errors opg", (TABULAR, ROADS)),
    "cluster": Line(
        "--cluster rider",
        (TABULAR, f"{TABULAR} --errors bootstrap", f"{TABULAR} --errors cluster"),
        {
            f"{TABULAR} --errors opg": "`--cluster` requires `--errors cluster` or `--errors bootstrap`, "
            "not `--errors opg`."
        },
    ),
    "joint": no_roads(
        "--joint",
        LINEAR,
        idle={GIVEN: "`--joint` requires estimated transitions: it cannot be combined with `--transitions`."},
        why="Transitions on roads are certain, not estimated.",
    ),
    "reps": Line(
        "--reps 400",
        (f"{TABULAR} --errors bootstrap", f"{ROADS} --errors bootstrap"),
        dict.fromkeys((TABULAR, ROADS, f"{TABULAR} --errors opg"), "`--reps` requires `--errors bootstrap`."),
    ),
    "seed": Line(
        "--seed 0",
        (f"{TABULAR} --errors bootstrap", NEURAL),
        dict.fromkeys((TABULAR, ROADS), "`--seed` requires `--errors bootstrap` or `--reward neural`."),
    ),
    "out": Line("--out some", (TABULAR, ROADS)),
    "config": Line("--config run.toml", ("", TABULAR)),
    "json": Line("--json", (TABULAR, ROADS)),
    "force": Line("--force", (f"{TABULAR} --out some",), {TABULAR: "`--force` requires `--out`."}),
}
ALL_RUN = (TABULAR, LINEAR)  # the methods of a comparison, each with its own options
COMPARE = {name: Line(line.typed, line.works[:1], line.idle) for name, line in RUN.items() if name != "method"} | {
    "weighting": Line("--weighting sample", (TABULAR,)),
    "updates": Line("--updates 2", ALL_RUN),
    "first_step": Line("--first-step logit", ALL_RUN),
    "start": Line("--start ccp", ALL_RUN),
    "seed": Line(
        "--seed 0",
        (*ALL_RUN, f"{ROADS} --errors bootstrap"),
        {ROADS: "`--seed` requires `--errors bootstrap` or `--reward neural`."},
    ),
}
NO_GOALS = "requires a fit of trips with goals."
NO_OUT: dict[str, str] = {"panel_fit": "`--force` requires `--out`."}
PREDICT: dict[str, Line] = {
    "saved": Line("", ("panel_fit",)),
    "goal": Line("--goal ce", ("roads_fit",), {"panel_fit": f"`--goal` {NO_GOALS}"}),
    "state": Line(
        "--state zoo", ("panel_fit",), {"panel_fit --states zoo.csv": "`--states` cannot be combined with `--state`."}
    ),
    "states": Line("--states zoo.csv", ("panel_fit",)),
    "period": Line(
        "--period 1",
        ("horizon_fit",),
        {
            "panel_fit": "`--period` requires a fit with --horizon.",
            "roads_fit --goal ce": "`--period` requires a fit with --horizon.",
        },
    ),
    "deterministic": Line("--deterministic", ("panel_fit",)),
    "out": Line("--out new.csv", ("panel_fit",)),
    "json": Line("--json", ("panel_fit",)),
    "force": Line("--force", ("panel_fit --out new.csv",), NO_OUT),
}
SIMULATE: dict[str, Line] = {
    "saved": Line("", ("panel_fit",)),
    "n": Line("--n 3", ("panel_fit", "roads_fit")),
    "length": Line(
        "--length 3",
        ("panel_fit", "horizon_fit"),
        {"roads_fit": "`--length` has no effect on a road network: trips end at their last link."},
    ),
    "seed": Line("--seed 3", ("panel_fit", "roads_fit")),
    "initial": Line("--initial zoo", ("panel_fit",)),
    "goal": Line("--goal ce", ("roads_fit",), {"panel_fit": f"`--goal` {NO_GOALS}"}),
    "out": Line("--out new.csv", ("panel_fit",)),
    "json": Line("--json", ("panel_fit",)),
    "force": Line("--force", ("panel_fit --out new.csv",), NO_OUT),
}
ASKED, CLOSED = "panel_fit --set shops=1", "roads_fit --close cd"
DRAWN = f"{ASKED} --bands bootstrap --reps 2"
COUNTERFACTUAL: dict[str, Line] = {
    "saved": Line("--set shops=1", ("panel_fit",)),
    "change": Line("--set shops*2", ("panel_fit",)),
    "discount": Line("--discount 0.5", ("panel_fit",)),
    "transitions": Line(
        "--transitions moves.csv",
        ("panel_fit",),
        {"roads_fit": "`--transitions` does not apply to a road network. Use --close."},
    ),
    "probability": Line(
        "--probability probability",
        ("panel_fit --transitions moves.csv",),
        dict.fromkeys((ASKED, CLOSED), "`--probability` requires `--transitions`."),
    ),
    "close": Line("--close cd", ("roads_fit",), {ASKED: f"`--close` {NO_GOALS}"}),
    "attribute": Line("--attribute time*2", ("roads_fit",), {ASKED: f"`--attribute` {NO_GOALS}"}),
    "links": Line(
        "--links bc",
        ("roads_fit --attribute time*2",),
        {CLOSED: "`--links` requires `--attribute`.", ASKED: f"`--links` {NO_GOALS}"},
    ),
    "bands": Line("--bands none", (ASKED, CLOSED)),
    "reps": Line(
        "--reps 2",
        (f"{ASKED} --bands bootstrap",),
        dict.fromkeys((ASKED, f"{ASKED} --bands delta"), "`--reps` requires `--bands bootstrap`."),
    ),
    "seed": Line("--seed 2", (DRAWN,), {ASKED: "`--seed` requires `--bands bootstrap`."}),
    "out": Line("--out answer", (ASKED, CLOSED)),
    "json": Line("--json", (ASKED, CLOSED)),
    "force": Line("--force", (f"{ASKED} --out answer",), {ASKED: "`--force` requires `--out`."}),
}
ALONE = "timing experiments run one cell at a time, on this machine."
RUST = {name: f"`--{name}` has no effect with `rust`. Only --out applies to it." for name in ("scale", "jobs", "only")}
RUST |= {name: f"`--{name}` has no effect with `rust`. Only --out applies to it." for name in ("cluster", "fresh")}
REPRODUCE: dict[str, Line] = {
    "what": Line("rust", ("",)),
    "scale": Line("--scale quick", ("paper",), {"rust": RUST["scale"]}),
    "out": Line("--out some", ("paper", "rust")),
    "jobs": Line(
        "--jobs 1",
        ("paper", "paper --only timing,updates", "paper --only timing,breakdown"),
        {
            "rust": RUST["jobs"],
            "paper --only timing": f"`--jobs` has no effect on timing: {ALONE}",
            "paper --cluster ray": "`--jobs` cannot be combined with `--cluster`. The cluster sets the number of "
            "workers.",
        },
    ),
    "cluster": Line(
        "--cluster ray",
        ("paper", "paper --only timing,updates"),
        {
            "rust": RUST["cluster"],
            "paper --only timing,breakdown": f"`--cluster` has no effect on timing and breakdown: {ALONE}",
        },
    ),
    "only": Line("--only timing", ("paper",), {"rust": RUST["only"]}),
    "fresh": Line("--fresh", ("paper",), {"rust": RUST["fresh"]}),
}
TABLE: dict[str, dict[str, Line]] = {
    "fit": RUN,
    "compare": COMPARE,
    "predict": PREDICT,
    "simulate": SIMULATE,
    "counterfactual": COUNTERFACTUAL,
    "reproduce": REPRODUCE,
    "report": {"folder": Line("results", ("",))},
}
EACH = [(command, name) for command, lines in TABLE.items() for name in lines]


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """Panels, a town of roads, and a fit of each kind."""
    folder = files.write(tmp_path_factory.mktemp("options"))
    panel = files.trips()
    panel.assign(to=panel.groupby("rider")["station"].transform("last")).pipe(_until_goal).to_csv(folder / "goals.csv")
    pd.DataFrame({"station": ["zoo"]}).to_csv(folder / "zoo.csv", index=False)
    panel = panel.assign(to=panel.groupby("rider")["station"].shift(-1)).dropna()
    ended = (panel["station"] == "zoo").groupby(panel["rider"]).cummax()
    panel[~ended].to_csv(folder / "ended.csv", index=False)
    links().to_csv(folder / "links.csv", index=False)
    links()[["link", "time"]].to_csv(folder / "bare.csv", index=False)  # no nodes: the turns join them
    nodes().to_csv(folder / "nodes.csv", index=False)
    town().turns_frame.to_csv(folder / "turns.csv", index=False)
    paths = ("ab bc cd da", "da ab bc ce", "ba ab bc cd", "cd da ab ba", "ab ba", *["ba ab bc"] * 5)
    trip_table(*((f"T{k}", path) for k, path in enumerate(paths))).to_csv(folder / "journeys.csv", index=False)
    (folder / "run.toml").write_text(
        'panel = "trips.csv"\nid = "rider"\ntime = "t"\nstate = "station"\naction = "choice"\nreward = "tabular"\n'
    )
    with quickly_in(folder):
        well("fit", *LINEAR.split(), "--out", "panel_fit")
        well("fit", *LINEAR.split(), "--horizon", 25, "--out", "horizon_fit")
        well("fit", *ROADS.split(), "--columns", "time,u_turn", "--l2", 0.1, "--out", "roads_fit")
    return folder


def _until_goal(panel: pd.DataFrame) -> pd.DataFrame:
    """Rows before the goal is reached first; the last step says where it led."""
    reached = (panel["station"] == panel["to"]).groupby(panel["rider"]).cummax()
    after = panel.groupby("rider")["station"].shift(-1)
    return panel.assign(next_station=after)[~reached]


@pytest.fixture(autouse=True)
def quick(data, monkeypatch, request):
    """In the folder of the data; what is asked is whether options are taken, so that no figure is drawn, no experiment
    run, and a fit ends when its parts are made."""
    monkeypatch.chdir(data)
    leave_out_reports(monkeypatch)
    monkeypatch.setattr("revealed.recipe.Recipe.fit", _parts_alone)
    monkeypatch.setattr("revealed.commands.reproduce._run", lambda *_: None)
    monkeypatch.setattr("revealed.commands.reproduce._report", lambda *_: None)
    monkeypatch.setattr("revealed.experiments.rust.run", _done)
    for made in ("some", "answer"):
        shutil.rmtree(data / made, ignore_errors=True)
    (data / "new.csv").unlink(missing_ok=True)


def _parts_alone(recipe: Any, method: str | None = None) -> Any:
    recipe.prepare()
    recipe.estimator(method)
    _done()


def _done() -> Any:
    raise typer.Exit(0)


def typed(command: str, line: Line, beside: str) -> list[str]:
    """The command with the option at its end; its argument is first."""
    return [command, *shlex.split(beside), *shlex.split(line.typed)]


@pytest.mark.parametrize(("command", "name"), EACH)
def test_an_option_is_taken_where_it_has_an_effect(command, name):
    line = TABLE[command][name]
    for beside in line.works:
        done = here(*typed(command, line, beside))
        assert (done.exit_code, done.stderr) == (0, ""), beside


@pytest.mark.parametrize(("command", "name"), [each for each in EACH if TABLE[each[0]][each[1]].idle])
def test_an_option_without_effect_is_refused_with_its_rule(command, name):
    line = TABLE[command][name]
    for beside, rule in line.idle.items():
        done = here(*typed(command, line, beside))
        assert one_line(done).startswith(f"revealed: {rule}"), beside
        assert (done.exit_code, done.stdout) == (1, ""), beside


def test_every_option_of_every_command_is_in_the_table():
    commands: Any = typer.main.get_command(cli.app)
    known = {name: {one.name for one in command.params} - {"help"} for name, command in commands.commands.items()}
    assert known == {command: set(lines) for command, lines in TABLE.items()}


def test_what_says_that_nothing_is_wanted_is_true_anywhere():
    for words in ("--no-joint", "--no-constants", "--smoothing 0", "--start zero", "--first-step auto"):
        for beside in (f"{TABULAR} --method ccp", GIVEN, ROADS):
            if not (beside == ROADS and words == "--smoothing 0"):
                assert here("fit", *beside.split(), *words.split()).exit_code == 0, (beside, words)
