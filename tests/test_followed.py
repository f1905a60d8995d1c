"""What a message of the command line suggests works when it is followed literally: on a horizon, with bins, with tables
of transitions, and for saved fits.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import trips as files
from shell import here, leave_out_reports, one_line, quickly_in, well

TABULAR = "fit trips.csv --id rider --time t --state station --action choice --reward tabular"
LATE = TABULAR.replace("trips", "late")
BUSES = "fit buses.csv --id bus --time month --period month --state miles --action decision --bins miles=8"
AGES = "fit aged.csv --id rider --time t --state t --action choice --constants --discount 0.9"
WALKS = "fit walks.csv --id who --time t --state at --action way --goal goal --constants --discount 0.9"
GRID = "fit grid.csv --id who --time t --state x,y --action go --next-state x2,y2 --reward tabular"

# what is typed, what is said of it, and what is typed instead
MISTAKES: list[tuple[str, str, str]] = [
    (
        f"{TABULAR} --horizon 24",
        "a decision in period 24 is beyond the horizon of 24 decisions (first at agent 0). Use --horizon 25 or",
        f"{TABULAR} --horizon 25",
    ),
    (f"{LATE} --horizon 31", "--first-time 0 or an earlier one.", f"{LATE} --horizon 31 --first-time 0"),
    (f"{LATE} --horizon 31", "--first-time own.", f"{LATE} --horizon 31 --first-time own"),
    (f"{LATE} --horizon 31 --first-time 5", "a time no later than 0", f"{LATE} --horizon 31 --first-time 0"),
    (f"{LATE} --horizon 31 --first-time onw", "such as 0, or own", f"{LATE} --horizon 31 --first-time own"),
    (f"{LATE} --horizon 24 --first-time 0", "Use --horizon 31 or", f"{LATE} --horizon 31 --first-time 0"),
    (
        f"{BUSES} --horizon 40 --first-time 0",
        "a date, like the times in the data, such as 1975-01-15, or own",
        f"{BUSES} --horizon 40 --first-time 1975-01-15",
    ),
    (
        f"{BUSES} --horizon 40 --first-time 1976-01",
        "a time no later than 1975-01-15",
        f"{BUSES} --horizon 40 --first-time 1975-01-15",
    ),
    ("predict horizon_fit --period 25", "a whole number in 0…24", "predict horizon_fit --period 24"),
    ("predict horizon_fit --state zo --period 3", "Did you mean zoo?", "predict horizon_fit --state zoo --period 3"),
    ("simulate horizon_fit --initial prak", "Did you mean park?", "simulate horizon_fit --initial park"),
    ("counterfactual horizon_fit --set shop=1", "Did you mean shops?", "counterfactual horizon_fit --set shops=1"),
    (
        "counterfactual horizon_fit --transitions slip.csv",
        "`--transitions`: expected one of airport, centre, harbour, museum, park, zoo; got 'zooo' (first at row 25). "
        "Did you mean zoo?",
        "counterfactual horizon_fit --transitions moves.csv",
    ),
    (
        f"{TABULAR} --transitions slip.csv --horizon 25",
        "`--state`: expected one of airport, centre, harbour, museum, park, zooo; got 'zoo'",
        f"{TABULAR} --transitions moves.csv --horizon 25",
    ),
    (
        f"{TABULAR} --transitions acts.csv",
        "`--action`: expected one of back, on, stays; got 'stay'",
        f"{TABULAR} --transitions moves.csv",
    ),
    (
        f"{TABULAR} --transitions acts.csv --action choise",
        "`--action`: expected one of the columns",
        f"{TABULAR} --transitions moves.csv",
    ),
    (
        BUSES.replace("miles=8", "mile=8"),
        "got 'mile'. Did you mean miles?",
        BUSES,
    ),
    (
        f"{BUSES},bus=2",
        "got 'bus'. To make it part of the state, pass --state miles,bus.",
        f"{BUSES.replace('--state miles', '--state miles,bus')},bus=2 --columns miles",
    ),
    (
        TABULAR.replace("--reward tabular", "--bins station=3"),
        "`--bins station=3`: expected numbers; got text such as",
        TABULAR,
    ),
    (
        "predict buses_fit --state 1e9",
        "`--state`: expected values from 0 to 99, the outer edges of column 'miles'; got 1000000000.0.",
        "predict buses_fit --state 99",
    ),
    (
        f"{TABULAR} --features stops.csv --coordinates x,y --feature-state stap",
        "`--feature-state`: expected one of the columns",
        f"{TABULAR} --features stops.csv --coordinates x,y --feature-state stop",
    ),
    (
        f"{TABULAR} --features stops.csv --coordinates x,y",
        "--feature-state stop.",
        f"{TABULAR} --features stops.csv --coordinates x,y --feature-state stop",
    ),
    (
        f"{TABULAR} --episode station",
        "1 state-action pair was observed 17 times, never with a next state, and so cannot be infeasible",
        f"{TABULAR} --episode station --unseen stay",
    ),
    (
        f"{TABULAR} --episode station",
        "or fill the pairs: --smoothing 1.0",
        f"{TABULAR} --episode station --smoothing 1.0",
    ),
    (AGES, "Assume that the state does not change (--unseen stay), give the states", f"{AGES} --unseen stay"),
    (
        AGES,
        "or use a kernel (--kernel 1.0, with --features and --coordinates x,y, or with bins)",
        f"{AGES} --bins t=12 --kernel 1.0",
    ),
    (AGES, "give the states after last decisions (--next-state,", f"{AGES} --next-state after"),
    (
        "counterfactual horizon_fit --transitions named.csv",
        "`--probability`: expected one of the columns",
        "counterfactual horizon_fit --transitions named.csv --probability p",
    ),
    (
        f"{AGES.replace('--state t', '--state t,rank')} --bins t=4",
        "for whole numbers, one bin each: --bins t=4,rank=edges:0,1,2.",
        f"{AGES.replace('--state t', '--state t,rank')} --bins t=4,rank=edges:0,1,2 --unseen stay",
    ),
    (WALKS, "Give the states after last decisions (--next-state):", f"{WALKS} --next-state to"),
    (
        f"{WALKS} --smoothing 1",
        "goal 'yard' cannot be reached from state 'inn' (first at trip 0, time 0, row 0). Give the states after last",
        f"{WALKS} --next-state to",
    ),
    (
        f"{WALKS} --unseen stay",
        "goal 'yard' cannot be reached from state 'inn' (first at trip 0, time 0, row 0). Give the states after last",
        f"{WALKS} --next-state to",
    ),
    (
        f"{GRID} --terminal 2,22 --discount 0.9",
        "`--terminal`: expected one of (0, 0), (0, 1)",
        f"{GRID} --terminal '(2, 2)' --discount 0.9",
    ),
]


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = files.write(tmp_path_factory.mktemp("followed"))
    panel, moves = files.trips(), files.ring().to_frame()
    panel.assign(t=panel["t"] + panel["rider"].astype(int) % 7).to_csv(folder / "late.csv", index=False)
    moves.columns = ["station", "choice", "next_station", "probability"]
    moves.rename(columns={"probability": "p"}).to_csv(folder / "named.csv", index=False)
    aged = panel.assign(after=panel["t"] + 1, rank=panel["rider"].astype(int) % 2)
    aged.to_csv(folder / "aged.csv", index=False)
    moves.replace("zoo", "zooo").to_csv(folder / "slip.csv", index=False)
    moves.replace("stay", "stays").to_csv(folder / "acts.csv", index=False)
    files.stations().rename(columns={"station": "stop"}).to_csv(folder / "stops.csv", index=False)
    ways = "0,0,inn,on,farm,yard\n0,1,farm,on,yard,yard\n1,0,inn,off,mill,yard\n1,1,mill,on,yard,yard\n"
    back = "2,0,mill,off,farm,yard\n2,1,farm,off,mill,yard\n2,2,mill,on,yard,yard\n"
    (folder / "walks.csv").write_text(f"who,t,at,way,to,goal\n{ways}{back}", encoding="utf-8")
    with quickly_in(folder):
        features = "--features stations.csv --columns shops"
        well(*TABULAR.replace("--reward tabular", features).split(), "--horizon", 25, "--out", "horizon_fit")
        well(*BUSES.split(), "--out", "buses_fit")
    return folder


@pytest.mark.parametrize(("mistake", "said", "instead"), MISTAKES)
def test_what_is_suggested_works(mistake, said, instead, data, monkeypatch):
    monkeypatch.chdir(data)
    leave_out_reports(monkeypatch)
    wrong = here(*shlex.split(mistake))
    assert wrong.exit_code == 1
    assert said in one_line(wrong)
    assert here(*shlex.split(instead)).exit_code in (0, 3)  # 3: a fit that did not converge


@pytest.mark.parametrize("label", ["9,9", "1", "1,2,3", "0,3"])
def test_numbers_that_only_look_alike_are_no_suggestion(label, data, monkeypatch):
    """(9, 9) is no slip of (2, 2)."""
    monkeypatch.chdir(data)
    said = one_line(here(*GRID.split(), "--discount", 0.9, "--terminal", label))
    assert "Did you mean" not in said
