"""A remedy that a message names works: the mistake is made, the message read, its remedy followed to the letter."""

import gzip
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

import revealed as rv
import trips as files
from models import random_mdp
from revealed.errors import RevealedError
from shell import here, one_line, quickly_in, stand_in

TRIPS = ("trips.csv", *files.FLAGS, "--discount", "0.9")
SHOPS = (*TRIPS, "--features", "stations.csv", "--columns", "shops")
THIN = ("thin.csv", *files.FLAGS, "--discount", "0.9", "--features", "stations.csv", "--columns", "shops")
LINE = ("--id", "i", "--time", "t", "--state", "s", "--action", "a", "--goal", "g", "--discount", "0.9")
BUSES = ("buses.csv", "--id", "bus", "--time", "month", "--action", "decision", "--constants", "--discount", "0.9")


def by_mistake(thing: Any) -> Any:
    """What stands in the place of another."""
    return thing


def turned(state: str, action: str) -> rv.Demonstrations:
    """States 0, 1, 2 and actions "go" and "no" in columns s and a."""
    panel = pd.DataFrame({"i": 0, "t": range(4), "s": [0, 1, 2, 0], "a": ["go", "no", "go", "no"]})
    columns: Any = {"actions": ["go", "no"]} if action == "a" else {}
    return rv.Demonstrations.from_frame(panel, id="i", time="t", state=state, action=action, **columns)


def swapped() -> Any:
    return rv.Demonstrations.from_trajectories(PAIRS, 3, 2), TWO


def line() -> pd.DataFrame:
    """Walks along four places to a fifth, in which nobody decides."""
    rng, rows = np.random.default_rng(0), []
    for i in range(30):
        s, t = int(rng.integers(0, 4)), 0
        while s < 4:
            step = 1 if rng.random() < 0.8 or s == 0 else -1
            rows.append((i, t, f"place{s}", "on" if step > 0 else "back", f"place{s + step}", "place4"))
            s, t = s + step, t + 1
    return pd.DataFrame(rows, columns=["i", "t", "s", "a", "s2", "g"])


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = files.write(tmp_path_factory.mktemp("remedies"))
    trips = files.trips()
    thin = trips[(trips["station"] != "zoo") | (trips["choice"] != "stay")]
    thin = thin[(thin["station"] != "zoo") | (thin["choice"] != "on")]
    thin.to_csv(folder / "thin.csv", index=False)
    trips[trips["t"] != 5].to_csv(folder / "gaps.csv", index=False)
    files.stations().iloc[:-1].to_csv(folder / "five.csv", index=False)
    files.stations().rename(columns={"station": "place"}).to_csv(folder / "places.csv", index=False)
    line().to_csv(folder / "line.csv", index=False)
    numbers = line().replace({f"place{k}": k for k in range(5)}).astype({"s": int, "g": int, "s2": int})
    (numbers.assign(**{name: numbers[name] * 10 for name in ("s", "s2", "g")})).to_csv(folder / "tens.csv", index=False)
    pd.DataFrame({"s": [0, 10, 20, 30], "x": [0.0, 1.0, 0.5, 2.0]}).to_csv(folder / "four.csv", index=False)
    pd.DataFrame({"s": [0, 10, 20, 30, 40], "x": [0.0, 1.0, 0.5, 2.0, 0.0]}).to_csv(
        folder / "five_tens.csv", index=False
    )
    features = pd.DataFrame({"s": [f"place{k}" for k in range(4)], "x": [0.0, 1.0, 0.5, 2.0]})
    features.to_csv(folder / "line_features.csv", index=False)
    (folder / "mine").mkdir()
    (folder / "mine" / "thesis.txt").write_text("years")
    (folder / "there.csv").write_text("years")
    (folder / "no_id.toml").write_text('panel = "trips.csv"\ntime = "t"\nstate = "station"\naction = "choice"\n')
    return folder


@pytest.fixture(autouse=True)
def inside(data, monkeypatch):
    stand_in(data, monkeypatch)


@pytest.fixture(scope="module")
def fitted(data):
    """Fits to be asked, made by the command."""
    with quickly_in(data):
        assert here("fit", *SHOPS, "--out", "shops").exit_code == 0
        to = ("--next-state", "s2", "--features", "line_features.csv", "--out", "to")
        assert here("fit", "line.csv", *LINE, *to).exit_code == 0


# what is typed, what the message says, and what is typed in its place
CASES: dict[str, tuple[tuple[Any, ...], str, tuple[Any, ...]]] = {
    "gaps": (("fit", "gaps.csv", *SHOPS[1:], "--gaps", "error"), "let --gaps break", ("fit", "gaps.csv", *SHOPS[1:])),
    "unseen: only what was seen": (
        ("fit", *THIN, "--unseen", "error"),
        "--unseen infeasible",
        ("fit", *THIN, "--unseen", "infeasible"),
    ),
    "unseen: stay": (("fit", *THIN, "--unseen", "error"), "--unseen stay", ("fit", *THIN, "--unseen", "stay")),
    "unseen: smoothing": (
        ("fit", *THIN, "--unseen", "error"),
        "--smoothing 1.0",
        ("fit", *THIN, "--unseen", "error", "--smoothing", "1.0"),
    ),
    "unseen: a kernel": (
        ("fit", *THIN, "--unseen", "error"),
        "--kernel 1.0, with --features and --coordinates x,y",
        ("fit", *THIN, "--unseen", "error", "--kernel", "1.0", "--coordinates", "x,y"),
    ),
    "unseen: an end": (
        ("fit", "line.csv", *LINE[:-4], "--discount", "0.9", "--constants", "--unseen", "error", "--next-state", "s2"),
        "--terminal",
        ("fit", "line.csv", *LINE[:-4], "--discount", "0.9", "--constants", "--terminal", "place4")
        + ("--next-state", "s2", "--unseen", "infeasible"),
    ),
    "a kernel without places": (
        ("fit", *SHOPS, "--kernel", "1"),
        "requires `--coordinates x,y` with `--features`",
        ("fit", *SHOPS, "--kernel", "1", "--coordinates", "x,y"),
    ),
    "a state without features": (
        ("fit", *TRIPS, "--features", "five.csv", "--columns", "shops"),
        "Add a row",
        ("fit", *SHOPS),
    ),
    "a goal without features": (
        ("fit", "tens.csv", *LINE, "--next-state", "s2", "--features", "four.csv"),
        "Add a row",
        ("fit", "tens.csv", *LINE, "--next-state", "s2", "--features", "five_tens.csv"),
    ),
    "states called otherwise": (
        ("fit", *TRIPS, "--features", "places.csv", "--columns", "shops"),
        "--feature-state place",
        ("fit", *TRIPS, "--features", "places.csv", "--columns", "shops", "--feature-state", "place"),
    ),
    "no features": (("fit", *TRIPS), "--reward tabular", ("fit", *TRIPS, "--reward", "tabular", "--l2", "0.1")),
    "no features but a file": (("fit", *TRIPS), "`--features` is required", ("fit", *SHOPS)),
    "bins of another column": (
        ("fit", *BUSES, "--state", "bus", "--bins", "miles=3"),
        "To make it part of the state, pass --state bus,miles",
        ("fit", *BUSES, "--state", "miles", "--bins", "miles=3", "--unseen", "stay", "--period", "month"),
    ),
    "smoothed transitions of a table": (
        ("fit", *SHOPS, "--transitions", "moves.csv", "--smoothing", "1"),
        "`--smoothing` cannot be combined with `--transitions`",
        ("fit", *SHOPS, "--smoothing", "1"),
    ),
    "a slip of a flag": (("fit", *TRIPS, "--featurs", "stations.csv"), "--features", ("fit", *SHOPS)),
    "a slip of a column": (
        ("fit", *TRIPS, "--features", "stations.csv", "--columns", "shop"),
        "Did you mean shops",
        ("fit", *SHOPS),
    ),
    "replications of no bootstrap": (
        ("fit", *SHOPS, "--reps", "3"),
        "--errors bootstrap",
        ("fit", *SHOPS, "--reps", "3", "--errors", "bootstrap"),
    ),
    "updates of no NPL": (
        ("fit", *SHOPS, "--updates", "3"),
        "--method npl",
        ("fit", *SHOPS, "--updates", "3", "--method", "npl"),
    ),
    "a folder of other things": (
        ("fit", *SHOPS, "--out", "mine"),
        "or add --force",
        ("fit", *SHOPS, "--out", "mine", "--force"),
    ),
    "a file that is there": (
        ("predict", "shops", "--out", "there.csv"),
        "Add --force",
        ("predict", "shops", "--out", "there.csv", "--force"),
    ),
    "no id": (
        ("fit", "--config", "no_id.toml"),
        "--id",
        ("fit", "--config", "no_id.toml", "--id", "rider", *SHOPS[-6:]),
    ),
    "a state that nobody knows": (
        ("predict", "shops", "--state", "parc"),
        "Did you mean park",
        ("predict", "shops", "--state", "park"),
    ),
    "nothing changes": (
        ("counterfactual", "shops"),
        "For example: --set RC=12, --discount 0.9",
        ("counterfactual", "shops", "--discount", "0.8", "--bands", "none"),
    ),
    "no goal": (("predict", "to"), "For example: --goal place4", ("predict", "to", "--goal", "place4")),
    "a parameter that nobody knows": (
        ("counterfactual", "shops", "--set", "shop=1"),
        "Did you mean shops",
        ("counterfactual", "shops", "--set", "shops=1", "--bands", "none"),
    ),
}


@pytest.mark.usefixtures("fitted")
@pytest.mark.parametrize("name", CASES)
def test_a_remedy_of_the_command_line_works(name):
    typed, said, instead = CASES[name]
    done = here(*typed)
    assert done.exit_code == 1
    assert said in one_line(done)
    again = here(*instead)
    assert again.exit_code == 0, again.stderr
    assert again.stdout


TWO = random_mdp(3, 2, seed=0)
PANEL = pd.DataFrame({"i": [0, 0, 1, 1], "t": [0, 1, 0, 1], "s": ["a", "b", "a", "b"], "d": ["x", "y", "x", "x"]})
GOALS = line().drop(columns="s2")
ROLES: dict[str, Any] = {"id": "i", "time": "t", "state": "s", "action": "d"}
PAIRS: list[Any] = [([0, 1, 2], [0, 1, 1]), ([2, 0], [0, 1])]


def read(**more: Any) -> rv.Demonstrations:
    return rv.Demonstrations.from_frame(PANEL, **ROLES, **more)


def heading(**more: Any) -> rv.Demonstrations:
    return rv.Demonstrations.from_frame(GOALS, id="i", time="t", state="s", action="a", goal="g", **more)


def led_to(**more: Any) -> Any:
    demos = rv.Demonstrations.from_trajectories([([0, 1], [0, 1]), ([1, 0], [0, 1])], 2, 2, **more)
    return rv.MDP(rv.estimate_transitions(demos))


LIBRARY: dict[str, tuple[Any, str, Any]] = {
    "a goal that states= does not list": (
        lambda: heading(states=["place0", "place1", "place2", "place3"]),
        r"A goal is a state, even if no decision is made there: list it in states=",
        lambda: heading(states=["place0", "place1", "place2", "place3", "place4"]),
    ),
    "a label with a slip": (
        lambda: read(states=["a", "bb"]),
        "Did you mean bb",
        lambda: read(states=["a", "b"]),
    ),
    "last decisions whose end was not seen": (
        led_to,
        r"next_state=, an argument of from_frame and from_trajectories",
        lambda: led_to(next_state=[0, 1]),
    ),
    "steps or a pair": (
        lambda: rv.Demonstrations.from_trajectories([[(0, 0), (1, 1)]], 3, 2),
        r"Write \(\[0, 1\], \[0, 1\]\) for the steps",
        lambda: rv.Demonstrations.from_trajectories([([0, 1], [0, 1])], 3, 2),
    ),
    "rows that do not sum to one": (
        lambda: rv.MDP(np.full((2, 1, 2), 0.50001)),
        "Divide the rows by their sums",
        lambda: rv.MDP(np.full((2, 1, 2), 0.50001) / 1.00002),
    ),
    "a start that does not sum to one": (
        lambda: TWO.replace(initial=[1.0, 1.0, 1.0]),
        "Divide by the sum",
        lambda: TWO.replace(initial=np.ones(3) / 3),
    ),
    "indices for a mask": (
        lambda: TWO.replace(terminal=[2]),
        r"np\.isin\(np\.arange\(3\), indices\)",
        lambda: TWO.replace(terminal=np.isin(np.arange(3), [2])),
    ),
    "a reward before its model": (
        lambda: rv.solve(by_mistake(np.zeros((3, 2))), TWO),
        r"The arguments are swapped: solve\(mdp, reward\)",
        lambda: rv.solve(TWO, np.zeros((3, 2))),
    ),
    "a model before what is judged": (
        lambda: rv.evaluate(TWO, rv.solve(TWO, np.zeros((3, 2))), np.ones((3, 2))),
        r"The arguments are swapped: evaluate\(fit, mdp, true_reward\)",
        lambda: rv.evaluate(rv.solve(TWO, np.zeros((3, 2))), TWO, np.ones((3, 2))),
    ),
    "a discount before its transitions": (
        lambda: rv.MDP(0.9, by_mistake(np.full((2, 1, 2), 0.5))),
        r"The arguments are MDP\(transitions, discount\)",
        lambda: rv.MDP(np.full((2, 1, 2), 0.5), 0.9),
    ),
    "states and actions swapped": (
        lambda: rv.NFXP(rv.TabularReward(3), l2=0.1).fit(TWO, turned("a", "s")),
        r"Are `state` and `action` swapped\?",
        lambda: rv.NFXP(rv.TabularReward(3), l2=0.1).fit(TWO, turned("s", "a")),
    ),
    "a slip in an option of a recipe": (
        lambda: rv.Recipe(panel=("x.csv",), id="a", tme="b", state=("s",), action=("a",), reward="tabular"),  # pyright: ignore[reportCallIssue]
        r"rv\.Recipe has no option `tme`\. Did you mean time\?",
        lambda: rv.Recipe(panel=("x.csv",), id="a", time="b", state=("s",), action=("a",), reward="tabular"),
    ),
    "a model and data swapped": (
        lambda: rv.NFXP(rv.TabularReward(3), l2=0.1).fit(*swapped()),
        r"The arguments are swapped: fit\(mdp, demonstrations\)",
        lambda: rv.NFXP(rv.TabularReward(3), l2=0.1).fit(TWO, rv.Demonstrations.from_trajectories(PAIRS, 3, 2)),
    ),
    "features for a reward": (
        lambda: rv.NFXP(by_mistake(np.eye(3))),
        r"rv\.LinearReward\(features\)",
        lambda: rv.NFXP(rv.LinearReward(np.eye(3))),
    ),
    "a horizon that is too short": (
        lambda: rv.NFXP(rv.TabularReward(3), l2=0.1).fit(
            TWO.unroll(2), rv.Demonstrations.from_trajectories(PAIRS, 3, 2)
        ),
        r"mdp\.base\.unroll\(3\)",
        lambda: rv.NFXP(rv.TabularReward(3), l2=0.1).fit(
            TWO.unroll(3), rv.Demonstrations.from_trajectories(PAIRS, 3, 2)
        ),
    ),
    "an option with a slip": (
        lambda: rv.NFXP(rv.TabularReward(3), max_itr=5),
        "Did you mean max_iter",
        lambda: rv.NFXP(rv.TabularReward(3), max_iter=5),
    ),
    "too few states": (
        lambda: rv.CCP(rv.TabularReward(3), l2=0.1).fit(
            TWO, rv.Demonstrations.from_trajectories([([0, 1], [0, 1])], 2, 2)
        ),
        "n_states=",
        lambda: rv.CCP(rv.TabularReward(3), l2=0.1).fit(
            TWO, rv.Demonstrations.from_trajectories([([0, 1], [0, 1])], 3, 2)
        ),
    ),
}


@pytest.mark.parametrize("name", LIBRARY)
def test_a_remedy_of_the_library_works(name):
    mistake, said, instead = LIBRARY[name]
    with pytest.raises(RevealedError) as told:
        mistake()
    assert re.search(said, str(told.value)), str(told.value)
    assert instead() is not None


def test_a_goal_is_not_only_taken_for_its_neighbour():
    """One in which nobody decides looks like the places beside it: what to do if it is no slip is said, too."""
    demos = heading()
    few = rv.MDP(np.full((4, 2, 4), 0.25), state_labels=[f"place{k}" for k in range(4)], action_labels=["on", "back"])
    with pytest.raises(RevealedError, match="A goal is a state of the model, even if no decision is made there"):
        rv.CCP(rv.TabularReward(4), l2=0.1).fit(few, demos)
    own = rv.estimate_transitions(demos, unseen="infeasible", smoothing=1.0)
    assert "place4" in (rv.MDP(own).state_labels or ())


def test_the_next_state_of_a_table_of_transitions(data):
    """The remedy names a column that every command looks for."""
    moves = pd.read_csv("moves.csv")
    moves.rename(columns={"next_station": "to"}).to_csv("renamed.csv", index=False)
    told = one_line(here("fit", *SHOPS, "--transitions", "renamed.csv"))
    found = re.search(r"Rename the column that holds this state to (\w+)\.", told)
    assert found is not None, told
    moves.rename(columns={"next_station": found[1]}).to_csv("renamed.csv", index=False)
    assert here("fit", *SHOPS, "--transitions", "renamed.csv").exit_code == 0


def test_late_entry_at_fractional_times():
    columns: dict[str, Any] = {"id": "id", "time": "t", "state": "s", "action": "a", "n_states": 4}
    late = pd.DataFrame({"id": [0, 0, 1, 1], "t": [0.5, 1.5, 1.5, 2.5], "s": [0, 1, 0, 1], "a": [0, 1, 1, 0]})
    horizon = random_mdp(4, 2, seed=0).unroll(4)
    with pytest.raises(RevealedError, match='first_time="own"') as told:
        rv.Demonstrations.from_frame(late, **columns).lift(horizon)
    assert "0.5" not in str(told.value).partition("If every id")[2]
    assert "which is period 0" not in str(told.value)
    rv.Demonstrations.from_frame(late, **columns, first_time="own").lift(horizon)
    rv.Demonstrations.from_frame(late.assign(t=(late.t - 0.5).astype(int)), **columns, first_time=0).lift(horizon)


@pytest.mark.parametrize("option", [("--reps", "5"), ("--seed", "1")])
def test_options_of_a_bootstrap_without_one(fitted, option):
    asked = ("counterfactual", "shops", "--set", "shops=2", *option)
    assert f"`{option[0]}` requires `--bands bootstrap`" in one_line(here(*asked))
    assert here(*asked, "--bands", "bootstrap", *(() if option[0] == "--reps" else ("--reps", "3"))).exit_code == 0


def test_draws_of_a_covariance_that_needs_none(fitted):
    fit = rv.load("shops")
    with pytest.raises(RevealedError, match='`reps` requires `kind="bootstrap"`'):
        fit.cov_params(reps=5)
    assert fit.cov_params("bootstrap", reps=3, jobs=1).shape == (1, 1)


def test_a_ragged_file_is_not_told_to_change_its_encoding(tmp_path):
    columns: dict[str, Any] = {"id": "id", "time": "t", "state": "s", "action": "a"}
    (tmp_path / "ragged.csv").write_text("id,t,s,a\n0,0,0,0\n0,1,1\n0,2,0,1,5\n")
    with pytest.raises(RevealedError, match=r"4 cells in line 1, 3 in line 3\. Every row needs as many cells"):
        rv.Demonstrations.from_frame(tmp_path / "ragged.csv", **columns)
    for text, told in (
        (
            "# a comment\nid,t,s,a\n0,0,0,0\n0,1,1,0\n",
            r"1 cell in line 1, 4 in line 2\. Remove the comment at the top of the file\.$",
        ),
        (
            'id,t,s,a\n0,0,0,0\n0,1,"1,0\n0,2,0,1\n',
            r"4 cells in line 1, 3 in line 3.*Check for an unclosed quote there\.$",
        ),
        ("id,t,s,a\n0,0,0,0,9\n0,1,1,0,9\n", r"4 cells in line 1, 5 in line 2\. Every row needs as many cells as the"),
    ):
        (tmp_path / "uneven.csv").write_text(text)
        with pytest.raises(RevealedError, match=r"got uneven\.csv: " + told):
            rv.Demonstrations.from_frame(tmp_path / "uneven.csv", **columns)
    (tmp_path / "packed.csv.gz").write_bytes(gzip.compress(b"id,t,s,a\n0,0,0,0\n0,1,1\n0,2,0,1,5\n"))
    with pytest.raises(RevealedError, match=r"4 cells in line 1, 3 in line 3"):
        rv.Demonstrations.from_frame(tmp_path / "packed.csv.gz", **columns)
    (tmp_path / "latin.csv").write_bytes("id,t,s,a\n0,0,café,x\n0,1,b,y\n".encode("latin-1"))
    with pytest.raises(RevealedError, match="Save it as UTF-8"):
        rv.Demonstrations.from_frame(tmp_path / "latin.csv", **columns)


def test_dates_written_as_whole_numbers_become_dates():
    columns: dict[str, Any] = {"id": "id", "time": "t", "state": "s", "action": "a", "period": "day"}
    table = pd.DataFrame({"id": 0, "t": [20200130, 20200131, 20200201], "s": [0, 1, 0], "a": [0, 1, 0]})
    with pytest.raises(RevealedError, match=r"pandas\.to_datetime\(column\.astype\(str\)\)"):
        rv.Demonstrations.from_frame(table, **columns)
    dated = table.assign(t=pd.to_datetime(table["t"].astype(str)))
    assert rv.Demonstrations.from_frame(dated, **columns).transition_counts.sum() == 2


def test_turns_of_no_network_are_what_is_wrong():
    told = one_line(here("fit", *SHOPS, "--turns", "moves.csv"))
    assert "`--turns` describes a road network, to which `--id` does not apply" in told
    assert here("fit", *SHOPS).exit_code == 0


def test_sizes_of_a_simulation_are_named_as_flags(fitted):
    told = one_line(here("simulate", "shops", "--n", "1000000000000", "--length", "1000", "--out", "much.csv"))
    assert "`--n, --length`" in told


BOX = rv.MDP(np.full((2, 2, 2), 0.5), 0.9)
BOXED = rv.LinearReward(np.eye(2)[:, :1])


@pytest.mark.parametrize(
    ("option", "remedy"),
    [
        *((name, "Did you mean learning_rate?") for name in ("lr", "learningrate")),
        *((name, "Did you mean max_iter?") for name in ("epochs", "n_iter", "maxiter", "max_iters")),
        *((name, "Did you mean l2?") for name in ("reg", "penalty", "L2", "weight_decay")),
        ("tolerance", "Did you mean tol?"),
        ("verbose", "Did you mean progress?"),
        *((name, "The discount belongs to the MDP: rv.MDP(") for name in ("gamma", "discount", "beta")),
        ("seed", "Estimation is deterministic; a network has its own seed"),
        ("updates", "Updates are those of NPL: rv.NPL(reward, updates=3)."),
        ("horizon", "The horizon belongs to the MDP: mdp.unroll(horizon)."),
    ],
)
def test_an_option_that_is_called_otherwise_elsewhere_names_ours(option, remedy):
    for ask in (lambda: rv.NFXP(BOXED, **{option: 1}), lambda: rv.CCP(BOXED).with_options(**{option: 1})):
        with pytest.raises(rv.errors.InvalidOption) as caught:
            ask()
        assert str(caught.value.remedy).startswith(remedy)


@pytest.mark.parametrize(
    ("given", "reader"),
    [
        (pd.DataFrame({"s": [0]}), "from_frame("),
        ("visits.csv", "from_frame("),
        ([([0, 1], [0])], "from_trajectories("),
        (np.ones((2, 2)), "from_counts("),
    ],
)
def test_data_that_were_not_read_name_the_reader(given, reader):
    for ask in (
        lambda: rv.NFXP(BOXED).fit(BOX, given),
        lambda: rv.estimate_transitions(given),
        lambda: rv.metrics.nll(np.full((2, 2), 0.5), given),
    ):
        with pytest.raises(rv.errors.InvalidInput, match=r"expected rv\.Demonstrations; got") as caught:
            ask()
        assert f"Use rv.Demonstrations.{reader}" in str(caught.value.remedy)


def test_a_model_is_no_reward_and_one_layer_may_be_a_number():
    with pytest.raises(rv.errors.InvalidReward, match=r"expected a reward, as rv\.LinearReward\(features\)") as caught:
        rv.NFXP(BOX)  # pyright: ignore[reportArgumentType]
    assert caught.value.remedy == "The MDP is an argument of fit(mdp, demonstrations)."
    assert rv.NeuralReward(np.eye(2), hidden=16).hidden == (16,)


def test_transitions_of_another_panel_are_refused_by_the_command_line(tmp_path):
    """Labels of the actions were swapped: three of four moves cannot happen."""
    rng = np.random.default_rng(0)
    at, rows = 0, []
    for t in range(200):
        way = int(rng.integers(2))
        rows.append({"id": t // 20, "t": t % 20, "s": "abcd"[at], "a": ("left", "right")[way]})
        at = (at + (1 if way else -1)) % 4 if t % 20 < 19 else 0
    pd.DataFrame(rows).to_csv(tmp_path / "walk.csv", index=False)
    moves = [
        {"s": "abcd"[k], "a": act, "next_state": "abcd"[(k + step) % 4], "p": 1.0}
        for k in range(4)
        for act, step in (("left", 1), ("right", -1))
    ]
    pd.DataFrame(moves).to_csv(tmp_path / "moves.csv", index=False)
    pd.DataFrame({"s": list("abcd"), "x": [0.0, 1.0, 2.0, 1.0]}).to_csv(tmp_path / "features.csv", index=False)
    files = [str(tmp_path / name) for name in ("walk.csv", "moves.csv", "features.csv")]
    flags = ["--id", "id", "--time", "t", "--state", "s", "--action", "a", "--probability", "p"]
    done = here("fit", files[0], *flags, "--transitions", files[1], "--features", files[2], "--discount", "0.9")
    said = one_line(done)
    assert done.exit_code == 1
    assert "190 of 190 observed moves are impossible" in said
    assert "Check that --transitions belong to this panel" in said
    assert "`--next-state` is the state that a decision led to." in said
