"""Rust's buses: the published numbers from the shipped counts, the counts from the raw files, and files that are wrong.

Raw files are no part of this project. Where they are found ($REVEALED_DATA, or a `shared` folder beside the
repository), the shipped counts are checked against them; elsewhere a small file made here stands in.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import revealed as rv
from revealed.datasets import bus_counts, bus_files
from revealed.environments.rust_bus import COSTS, bus_features, bus_transitions
from revealed.errors import InvalidDiscount, InvalidInput, InvalidOption, MissingData
from revealed.experiments.rust import PARAMETERS, PUBLISHED

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared" / "data" / "rust1987"
# observations, replacements, and increments by 0, 1, 2 bins
COUNTED = {
    (1, 2, 3): (3864, 27, [1163, 2660, 41]),
    (4,): (4292, 33, [1682, 2555, 55]),
    (1, 2, 3, 4): (8156, 60, [2845, 5215, 96]),
}
PRINTED = [key for key, published in PUBLISHED.items() if not np.isnan(published.llf)]


def raw_folder() -> Path | None:
    given = os.environ.get("REVEALED_DATA")
    places = [Path(given), Path(given) / "rust1987", SHARED] if given else [SHARED]
    return next((place for place in places if (place / "a530875.asc").is_file()), None)


RAW = raw_folder()
with_raw_files = pytest.mark.skipif(RAW is None, reason="needs Rust's raw files: set REVEALED_DATA to their folder")


@pytest.fixture(autouse=True)
def no_raw_files(monkeypatch, tmp_path):
    """Nothing is found unless a test says where."""
    monkeypatch.delenv("REVEALED_DATA", raising=False)
    monkeypatch.setattr(bus_files, "_user_cache", lambda: tmp_path / "cache")


def fit(bus):
    return rv.NFXP(bus.reward).fit(bus.mdp, bus.demonstrations)


def compare(ours, published, tolerance):
    """Wherever a number was published."""
    given = ~np.isnan(published)
    assert given.any()
    assert np.asarray(ours)[given] == pytest.approx(np.asarray(published)[given], abs=tolerance)


@pytest.mark.parametrize("key", PRINTED, ids=str)
def test_table_ix_comes_out_of_the_shipped_counts(key):
    bus = rv.datasets.rust_bus(groups=list(key[0]), discount=key[1])
    found = fit(bus)
    compare([*found.params[["RC", "theta11"]], *bus.increments[:2]], PUBLISHED[key].estimates, 1.5e-4)
    assert found.llf + bus.transition_llf == pytest.approx(PUBLISHED[key].llf, abs=1.5e-3)


@pytest.mark.parametrize("key", PRINTED, ids=str)
def test_the_published_standard_errors_are_joint_outer_products_of_gradients(key):
    bus = rv.datasets.rust_bus(groups=list(key[0]), discount=key[1])
    covariance = fit(bus).cov_params("opg", joint=True)
    assert tuple(covariance.index) == PARAMETERS
    compare(np.sqrt(np.diag(covariance)), PUBLISHED[key].errors, 1.5e-3)


@pytest.mark.parametrize("groups", COUNTED)
def test_counts_are_those_of_rust(groups):
    observations, replacements, increments = COUNTED[groups]
    bus = rv.datasets.rust_bus(groups=list(groups))
    assert bus.demonstrations.counts.sum(axis=0).tolist() == [observations - replacements, replacements]
    assert bus.counts.sum(axis=0).tolist() == increments
    assert bus.transition_llf == pytest.approx(sum(n * np.log(n / observations) for n in increments), rel=1e-12)


def test_the_model_is_that_of_the_simulator_at_the_shares_seen():
    bus = rv.datasets.rust_bus(groups=4)
    expected = bus_transitions(90, bus.increments.to_numpy())
    assert abs(bus.mdp.transitions.matrix - expected).max() < 1e-15
    assert bus.mdp.action_labels == ("keep", "replace")
    assert bus.mdp.initial is not None
    assert bus.mdp.initial[0] == 1.0
    assert bus.mdp.estimated is not None
    assert bus.mdp.estimated.names == ("theta30", "theta31")


def test_groups_come_in_any_order_and_one_as_itself():
    one, listed = rv.datasets.rust_bus(groups=4), rv.datasets.rust_bus(groups=(4,))
    assert one.groups == listed.groups == (4,)
    assert rv.datasets.rust_bus(groups=[4, 2]).groups == (2, 4)
    parts = sum(rv.datasets.rust_bus(groups=g).demonstrations.counts for g in (2, 4))
    assert np.array_equal(rv.datasets.rust_bus(groups=[4, 2]).demonstrations.counts, parts)


@pytest.mark.parametrize("cost", COSTS)
def test_costs_by_name(cost):
    bus = rv.datasets.rust_bus(groups=4, cost=cost)
    theta = np.array([2.0, 3.0])
    assert np.array_equal(bus.reward.value(theta), bus_features(90, cost) @ theta)


def test_a_cost_twice_as_high_halves_its_parameter_and_nothing_else():
    once = fit(rv.datasets.rust_bus(groups=4))
    twice = fit(rv.datasets.rust_bus(groups=4, cost=lambda x: 0.002 * x))
    assert twice.theta == pytest.approx(once.theta * [1.0, 0.5], rel=1e-6)
    assert twice.llf == pytest.approx(once.llf, rel=1e-10)


def test_what_it_is_can_be_read():
    said = repr(rv.datasets.rust_bus(groups=[1, 2, 3]))
    assert "groups 1, 2, 3; 90 bins, discount 0.9999; 3864 months, 27 replacements" in said
    assert "0.3010/0.6884/0.0106; counts that ship with revealed" in said


def test_estimating_from_shipped_counts_loads_no_pandas():
    code = "import sys, revealed as rv; rv.datasets.rust_bus().transition_llf; print('pandas' in sys.modules)"
    elsewhere = os.environ | {"HOME": "/nowhere", "XDG_CACHE_HOME": "/nowhere"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=elsewhere)
    assert done.stdout.strip() == "False", done.stderr


# ---- the raw files ----


@with_raw_files
def test_the_shipped_counts_are_what_the_code_makes_of_the_raw_files():
    assert RAW is not None
    shipped = Path(bus_counts.__file__).with_name(bus_counts.NAME).read_text(encoding="ascii")
    assert bus_counts.counts_as_text(RAW) == shipped


@with_raw_files
@pytest.mark.parametrize("groups", [[4], [1, 2, 3]])
def test_raw_files_give_the_same_fit_and_know_the_buses(groups):
    raw, shipped = rv.datasets.rust_bus(groups, path=RAW), rv.datasets.rust_bus(groups)
    assert np.array_equal(raw.demonstrations.counts, shipped.demonstrations.counts)
    assert fit(raw).theta == pytest.approx(fit(shipped).theta, rel=1e-12)
    assert raw.demonstrations.n_agents == sum(bus_files.FILES[g][2] for g in groups)
    assert raw.mdp.estimated is not None
    assert raw.mdp.estimated.ids == raw.demonstrations.ids
    months = raw.panel.groupby("bus")
    assert list(months.size()) == np.asarray(raw.demonstrations.by_agent.sum(axis=1)).reshape(-1).tolist()
    seen = raw.mdp.estimated.by_agent.toarray()
    assert np.array_equal(seen[:, 2], months["usage"].agg(lambda usage: (usage == 2).sum()))


@with_raw_files
@pytest.mark.parametrize("bins", [90, 175, 40])
def test_every_group_reads_and_mileage_adds_up(bins):
    """A bin is the one before plus the usage, from scratch after a replacement; bins hold their miles."""
    panel = rv.datasets.rust_bus(list(range(1, 9)), bins=bins, path=RAW).panel
    before = panel.groupby("bus")[["x", "d"]].shift()
    inside = before["x"].notna()
    kept = (before["x"] + 1) * (1 - before["d"])
    assert (panel["x"] + 1 == kept + panel["usage"])[inside].all()
    width = 450_000 / bins
    assert (panel["mileage"] > panel["x"] * width).all()
    assert (panel["mileage"] <= (panel["x"] + 1) * width).all()
    assert panel.groupby("bus")["odometer"].apply(lambda odometer: odometer.is_monotonic_increasing).all()


@with_raw_files
def test_months_follow_the_calendar():
    panel = rv.datasets.rust_bus(4, path=RAW).panel
    one = panel[panel["bus"] == 5297]
    assert (one["date"].dt.strftime("%Y-%m").iloc[[0, -1]] == ["1975-10", "1985-05"]).all()
    assert one["time"].tolist() == list(range(1, 117))


# ---- a file made here: four buses of group 2, sixty rows ----


def made(second: int = 0) -> np.ndarray:
    """(60, 4): the odometer grows by 4,000 a month from 1,000; bus 1's engine is replaced at 50,000 miles, and again
    at `second`."""
    matrix = np.zeros((60, 4), dtype=int)
    matrix[0] = [1, 2, 3, 4]
    matrix[5, 0], matrix[8, 0] = 50_000, second
    matrix[9:11] = [[11], [81]]
    matrix[11:] = 1000 + 4000 * np.arange(49)[:, None]
    return matrix


def folder_with(tmp_path: Path, matrix: np.ndarray) -> Path:
    (tmp_path / "rt50.asc").write_text("".join(f"{number:7d}\n" for number in matrix.T.reshape(-1)))
    return tmp_path


def test_a_made_file_is_read_by_hand(tmp_path):
    """Readings 13 and later are of bus 1's new engine: it was replaced in month 12, at 49,000 miles, bin ⌈9.8⌉."""
    bus = rv.datasets.rust_bus(2, path=folder_with(tmp_path, made()))
    panel = bus.panel.set_index(["bus", "time"])
    read = panel[["odometer", "mileage", "x", "d", "usage"]]
    months = [(1, 12), (1, 13), (1, 14), (2, 13)]
    assert read.loc[months].to_numpy().tolist() == [
        [49_000, 49_000, 9, 1, 1],
        [53_000, 3_000, 0, 0, 1],
        [57_000, 7_000, 1, 0, 1],
        [53_000, 53_000, 10, 0, 1],
    ]
    assert panel["date"].loc[(1, 2)].strftime("%Y-%m") == "1982-01"
    assert (bus.n_replacements, bus.demonstrations.n_decisions) == (1, 4 * 48)
    # a bus that is kept goes from bin ⌈0.2⌉ to ⌈38.6⌉ in 48 months; bus 1 from 1 to 10 in 12, by 1, and by 28 in 35
    assert bus.counts.sum(axis=0).tolist() == [3 * 10 + 3 + 7, 3 * 38 + 9 + 1 + 28]
    assert f"192 months of 4 buses, 1 replacement, increments 0.2083/0.7917; raw files in {tmp_path}" in repr(bus)


def test_raw_files_are_found_where_the_documentation_says(tmp_path, monkeypatch):
    shipped = rv.datasets.rust_bus(2)
    home = tmp_path / "cache" / "revealed" / "rust1987"
    for place in (home, tmp_path / "data" / "rust1987", tmp_path / "data"):  # each comes before those that are there
        place.mkdir(parents=True, exist_ok=True)
        folder_with(place, made())
        if place != home:
            monkeypatch.setenv("REVEALED_DATA", str(tmp_path / "data"))
        assert rv.datasets.rust_bus(2).source == f"raw files in {place}"
    assert rv.datasets.rust_bus(4).source == shipped.source  # its file is in none of them


def test_the_end_of_file_mark_of_the_time_is_no_number(tmp_path):
    folder = folder_with(tmp_path, made())
    with (folder / "rt50.asc").open("a") as file:
        file.write("\x1a")
    assert rv.datasets.rust_bus(2, path=folder).demonstrations.n_agents == 4


def spoiled(tmp_path: Path, line: int, text: str) -> Path:
    folder = folder_with(tmp_path, made())
    lines = (folder / "rt50.asc").read_text().splitlines()
    lines[line - 1 : line] = [text] if text else []
    (folder / "rt50.asc").write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.parametrize(
    ("line", "text", "said"),
    [
        (17, "12.5", r"one whole number >= 0 per line; got '12\.5' \(first at rt50\.asc, line 17\)"),
        (80, "miles", r"got 'miles' \(first at rt50\.asc, line 80\)"),
        (81, "12 13", r"got '12 13' \(first at rt50\.asc, line 81\)"),
        (82, "-4", r"got '-4' \(first at rt50\.asc, line 82\)"),
        (99, "9" * 400, r"got '9{20,40}.*line 99"),
        (17, "", r"expected 240 whole numbers, 60 for each of 4 buses, in rt50\.asc; got 239.*line 240"),
        (17, "1\n2", r"got 241 \(first at rt50\.asc, line 241\)"),
        (74, "3000", r"odometer readings that never decrease; got 3000 \(first at rt50\.asc, line 74, bus 2\)"),
        (240, "460000", r"at most 450000 miles on an engine; got 460000 \(first at rt50\.asc, line 240, bus 4\)"),
        (9, "51000", r"at most one replacement in a month; got 2 \(first at rt50\.asc, line 24, bus 1\)"),
        (70, "13", r"months from 1 to 12; got 13 \(first at rt50\.asc, line 70, bus 2\)"),
    ],
)
def test_a_file_that_is_wrong_is_named_with_its_line(tmp_path, line, text, said):
    with pytest.raises(InvalidInput, match=said):
        rv.datasets.rust_bus(2, path=spoiled(tmp_path, line, text))


def test_a_folder_without_the_files_is_an_error(tmp_path):
    remedy = "there, or omit path: counts shipped with revealed cover groups 1 to 4 with 90 or 175 bins"
    said = r"g870\.asc, rt50\.asc; got .* without g870\.asc\. Put that file " + remedy
    with pytest.raises(MissingData, match=said):
        rv.datasets.rust_bus([1, 2], path=folder_with(tmp_path, made()))
    with pytest.raises(MissingData, match=r"got .* without g870\.asc, a530875\.asc\. Put those files " + remedy):
        rv.datasets.rust_bus([1, 2, 4], path=tmp_path)
    with pytest.raises(MissingData, match=r"a530875\.asc; got .* which is not a folder\. Put that file " + remedy):
        rv.datasets.rust_bus(4, path=tmp_path / "nowhere")
    with pytest.raises(InvalidInput, match=r"`path`: expected the folder.* Omit path: counts shipped"):
        rv.datasets.rust_bus(4, path=7)


def test_without_raw_files_the_panel_tells_where_they_go():
    with pytest.raises(MissingData, match=r"path=, set \$REVEALED_DATA to it, or use .*rust1987"):
        _ = rv.datasets.rust_bus(4).panel


@pytest.mark.parametrize(("groups", "bins"), [(5, 90), ([4, 8], 175), (4, 100)])
def test_what_is_not_shipped_needs_raw_files(groups, bins):
    with pytest.raises(MissingData, match=r"counts shipped.* groups 1 to 4 with 90 or 175 bins.*REVEALED_DATA"):
        rv.datasets.rust_bus(groups, bins=bins)


@pytest.mark.parametrize("groups", [0, 9, [], [4, 4], "4", [1.0], True, None, {4: 1}.items()])
def test_groups_are_one_to_eight(groups):
    with pytest.raises(InvalidInput, match=r"`groups`: expected one of the bus groups 1 to 8"):
        rv.datasets.rust_bus(groups)


def test_other_arguments_are_checked():
    with pytest.raises(InvalidInput, match="`bins`"):
        rv.datasets.rust_bus(4, bins=1)
    with pytest.raises(InvalidDiscount):
        rv.datasets.rust_bus(4, discount=1.5)
    with pytest.raises(InvalidOption, match=r"`cost`.*square root"):
        rv.datasets.rust_bus(4, cost="cubic")
