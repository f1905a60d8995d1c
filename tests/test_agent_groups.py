"""Clusters by any column: read along with the data, named by an array, and counted as one wherever agents are."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import revealed as rv
from fits import MadeUp
from revealed.agent_groups import AgentGroups, group_agents
from revealed.bootstrap import draw_weights
from revealed.errors import InvalidDemonstrations, InvalidOption
from shell import here
from trips import FLAGS, NAMES, ring, stations, trips, write

LINES = ("red", "green", "blue")


def panel() -> pd.DataFrame:
    """Riders of three lines, whose names say nothing of their order."""
    frame = trips(n=30, length=12)
    return frame.assign(line=[LINES[int(rider) % 3] for rider in frame["rider"]])


def demos_of(frame: Any, **options: Any) -> rv.Demonstrations:
    return rv.Demonstrations.from_frame(frame, **NAMES, **options)


def fit_of(demos: rv.Demonstrations, method: Any = rv.NFXP) -> rv.Fit:
    reward = rv.LinearReward.from_frame(stations(), state="station", columns=["shops", "green"])
    return method(reward).fit(ring(), demos)


@pytest.fixture(scope="module")
def fit() -> rv.Fit:
    return fit_of(demos_of(panel(), keep=["line"]))


def test_a_column_is_read_along(fit):
    demos = demos_of(panel(), keep="line")
    assert demos.columns == {"line": tuple(LINES[int(i) % 3] for i in demos.ids)}
    assert demos.subset([4, 1]).columns == {"line": (LINES[4 % 3], LINES[1])}
    back = demos.to_frame(**NAMES)
    assert demos_of(back, keep="line").columns == demos.columns
    assert demos_of(panel()).columns == {}


def test_wherever_a_panel_is_counted_the_columns_are_the_same(tmp_path):
    pl = pytest.importorskip("polars")
    frame = panel().assign(size=lambda f: f["rider"].astype(int) % 4)
    frame.to_csv(tmp_path / "panel.csv", index=False)
    wanted = demos_of(frame, keep=["line", "size"]).columns
    shuffled = frame.sample(frac=1.0, random_state=0)
    for source in (tmp_path / "panel.csv", pl.from_pandas(shuffled).lazy(), pl.from_pandas(shuffled)):
        for keep_steps in (False, True):
            assert demos_of(source, keep=["line", "size"], keep_steps=keep_steps).columns == wanted


@pytest.mark.parametrize("where", ["memory", "file", "lazy"])
def test_a_column_that_changes_within_an_agent_is_refused(where, tmp_path):
    pl = pytest.importorskip("polars")
    frame = panel()
    frame.loc[frame["t"] == 5, "line"] = "yellow"
    frame.to_csv(tmp_path / "panel.csv", index=False)
    given = {"memory": frame, "file": tmp_path / "panel.csv", "lazy": pl.from_pandas(frame).lazy()}[where]
    with pytest.raises(InvalidDemonstrations, match=r"`keep`: expected one value of 'line' per id; got .* for id 0"):
        demos_of(given, keep="line", keep_steps=None if where == "memory" else False)


@pytest.mark.parametrize("where", ["memory", "file", "lazy"])
def test_missing_groups_are_refused(where, tmp_path):
    pl = pytest.importorskip("polars")
    frame = panel()
    frame.loc[frame["rider"] == 3, "line"] = None
    frame.to_csv(tmp_path / "panel.csv", index=False)
    given = {"memory": frame, "file": tmp_path / "panel.csv", "lazy": pl.from_pandas(frame).lazy()}[where]
    with pytest.raises(InvalidDemonstrations, match=r"`keep`: expected no missing values"):
        demos_of(given, keep="line", keep_steps=None if where == "memory" else False)
    with pytest.raises(rv.errors.RevealedError, match="lyne"):
        demos_of(panel(), keep="lyne")


def test_clusters_are_sums_of_the_agents_scores(fit):
    U = fit.evidence.agent_scores
    code = np.array([LINES.index(v) for v in fit.demonstrations.columns["line"]])
    sums = np.array([U[code == k].sum(axis=0) for k in range(3)])
    inverse = np.linalg.inv(fit.evidence.bread)
    expected = inverse @ (sums.T @ sums * 3 / 2) @ inverse
    np.testing.assert_allclose(fit.with_errors("cluster", by="line").covariance(), expected, rtol=1e-9)
    # results of one grouping are not those of another, although fits share what they keep
    alone = fit.with_errors("cluster").covariance()
    assert np.abs(alone / expected - 1.0).max() > 1e-3
    np.testing.assert_allclose(fit.with_errors("cluster", by="line").covariance(), expected, rtol=1e-9)


def test_a_group_per_agent_is_the_usual_cluster(fit):
    own = fit.with_errors("cluster", by=list(range(fit.demonstrations.n_agents)))
    np.testing.assert_allclose(own.covariance(), fit.with_errors("cluster").covariance(), rtol=1e-12)


def test_groups_may_be_named_in_many_ways(fit):
    ids = fit.demonstrations.ids
    lines = [LINES[int(i) % 3] for i in ids]
    wanted = fit.with_errors("cluster", by="line").bse
    for by in (lines, np.array(lines), dict(zip(ids, lines)), pd.Series(lines, index=list(ids), name="line")):
        np.testing.assert_allclose(fit.with_errors("cluster", by=by).bse, wanted, rtol=1e-12)
    assert fit.with_errors("cluster", by=pd.Series(lines, index=list(ids), name="line")).groups.by == "line"


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ("lien", "Did you mean line"),
        ("village", r"the demonstrations have no column 'village' \(only line\)"),
        ([1, 2, 3], "30 values, one per agent; got 3 values"),
        ({0: "a"}, "a group for every agent's id; got none for 29 of 30"),
        *(([gap] + [1] * 29, "without missing values") for gap in (None, np.nan, pd.NA, pd.NaT, np.datetime64("NaT"))),
        ([1] * 30, "at least two groups of agents; got 1"),
        (7, "the name of a column"),
    ],
)
def test_what_is_no_grouping_is_refused(fit, by, words):
    with pytest.raises(InvalidOption, match=words):
        fit.with_errors("cluster", by=by)


def test_groups_belong_to_clusters_and_bootstraps(fit):
    with pytest.raises(InvalidOption, match=r"`by` requires `kind=.*cluster.*` or `kind=.*bootstrap.*`"):
        fit.with_errors("robust", by="line")
    with pytest.raises(InvalidOption, match=r"the demonstrations have no column 'line' \(no columns were kept\)"):
        fit_of(demos_of(panel())).with_errors("cluster", by="line")


def test_a_bootstrap_draws_whole_groups(fit):
    ids = fit.demonstrations.ids
    five = fit.with_errors("bootstrap", by=[int(i) % 5 for i in ids], reps=4, seed=2, jobs=1, progress=False)
    drawn = five.bootstrap()
    code = five.groups.code
    for r in range(4):
        weights = draw_weights(5, 2, r)[code]
        again = five.estimator.refit(five.mdp, five.demonstrations.reweighted(weights), five.theta, five.near_value)
        np.testing.assert_allclose(drawn.theta[r], again.theta, rtol=1e-7)
    agents = fit.bootstrap(reps=4, seed=2, jobs=1, progress=False)
    assert np.abs(agents.theta - drawn.theta).max() > 1e-3
    assert "5 clusters by group drawn" in str(drawn)


def test_a_bootstrap_by_groups_is_saved_and_found_again(fit, tmp_path):
    grouped = fit.with_errors("bootstrap", by="line", reps=5, seed=1, jobs=1, progress=False)
    grouped.bootstrap()
    fit.bootstrap(reps=5, seed=1, jobs=1, progress=False)
    loaded = rv.load(grouped.save(tmp_path / "fit"))
    np.testing.assert_array_equal(loaded.drawn.theta, grouped.drawn.theta)
    assert len(loaded.kept) == len([key for key in fit.kept if key[0] == "bootstrap"]) >= 2
    assert loaded.groups.by == "line"


def test_joint_errors_are_clustered_by_the_same_groups():
    demos = demos_of(panel(), keep="line")
    mdp = rv.MDP(rv.estimate_transitions(demos, unseen="stay"), discount=0.9)
    reward = rv.LinearReward.from_frame(stations(), state="station", columns=["shops", "green"])
    fit = rv.NFXP(reward).fit(mdp, demos)
    joint = fit.with_errors("cluster", joint=True, by="line")
    assert np.isfinite(joint.covariance()).all()
    alone = fit.with_errors("cluster", joint=True)
    assert np.abs(joint.covariance() / alone.covariance() - 1.0).max() > 1e-3
    own = fit.with_errors("cluster", joint=True, by=list(range(demos.n_agents)))
    np.testing.assert_allclose(own.covariance(), alone.covariance(), rtol=1e-9)


def test_a_horizon_keeps_the_columns():
    demos = demos_of(panel(), keep="line")
    fit = fit_of(demos)
    long = rv.NFXP(fit.reward_model).fit(ring().unroll(12), demos)
    assert long.demonstrations.columns == demos.columns
    assert np.isfinite(long.with_errors("cluster", by="line").bse).all()


def test_few_clusters_are_told():
    few = AgentGroups("line", np.arange(37) % 3, LINES)
    said = " ".join(str(MadeUp(errors=("cluster", False), groups=few).summary()).split())
    assert "cluster by line (3)" in said
    assert "Standard errors from few clusters (3, by line) tend to be too small" in said
    assert "few clusters" not in str(MadeUp(errors=("cluster", False)).summary())
    assert "few clusters" not in str(MadeUp(groups=few).summary())
    assert "few clusters" in " ".join(str(MadeUp(errors=("cluster", False), agents=12).summary()).split())


def test_keys_tell_groupings_apart_whatever_they_are_called():
    demos = demos_of(panel(), keep="line")
    one = group_agents(demos, "line")
    renamed = group_agents(demos, [v.upper() for v in demos.columns["line"]])
    assert one.key == renamed.key
    assert one.key != group_agents(demos, [int(i) % 4 for i in demos.ids]).key


def test_the_command_line_clusters_by_a_column(tmp_path: Path):
    write(tmp_path)
    panel().to_csv(tmp_path / "lines.csv", index=False)
    words = (tmp_path / "lines.csv", *FLAGS, "--features", tmp_path / "stations.csv", "--columns", "shops,green")
    done = here("fit", *words, "--discount", "0.9", "--cluster", "line")
    assert done.exit_code == 0, done.stderr
    assert "cluster by line (3)" in done.stdout
    refused = here("fit", *words, "--cluster", "line", "--errors", "robust")
    assert refused.exit_code == 1
    assert "`--cluster` requires `--errors cluster` or `--errors bootstrap`" in refused.stderr
    lost = here("fit", *words, "--cluster", "lien")
    assert lost.exit_code == 1
    assert "Did you mean line" in lost.stderr


def test_what_was_saved_before_there_were_groups_is_read(fit):
    """Files without groups, columns and what was drawn load as they did."""
    from revealed.loading import _Decoder
    from revealed.saving import Encoder

    fit.bootstrap(reps=5, seed=1, jobs=1, progress=False)
    encoder = Encoder()
    document = encoder.fit(fit)
    del document["groups"], document["demonstrations"]["fields"]["columns"]
    document["kept"] = [one for one in document["kept"] if not one["by"]]
    for one in document["kept"]:
        del one["by"], one["units"]
    loaded = _Decoder(encoder.arrays, None).fit(document)
    assert loaded.groups is None
    assert loaded.demonstrations.columns == {}
    assert ("bootstrap", 5, 1) in loaded.kept
    np.testing.assert_allclose(loaded.with_errors("cluster").bse, fit.with_errors("cluster").bse, rtol=1e-9)


def test_rows_of_a_panel_are_no_ids(fit):
    """A column of the panel, one value a row: its index counts rows, and some of these numbers are ids by chance."""
    with pytest.raises(InvalidOption, match="`by`: expected a Series whose index holds the ids of agents"):
        fit.with_errors("cluster", by=panel()["line"])
    by_rider = panel().groupby("rider")["line"].first()
    own = fit.with_errors("cluster", by="line").bse
    pd.testing.assert_series_equal(fit.with_errors("cluster", by=by_rider).bse, own)
    pd.testing.assert_series_equal(fit.with_errors("cluster", by=by_rider.rename_axis(None)).bse, own)


def test_an_id_has_one_group(fit):
    by_row = panel().set_index("rider")["line"]
    pd.testing.assert_series_equal(fit.with_errors("cluster", by=by_row).bse, fit.with_errors("cluster", by="line").bse)
    twice = by_row.copy()
    twice.iloc[1] = "mauve"
    with pytest.raises(InvalidOption, match=r"`by`: expected one group per id; got '.*' and 'mauve'"):
        fit.with_errors("cluster", by=twice)


def test_positions_where_ids_are_numbers_are_told_how_to_say_so(fit):
    demos = demos_of(panel().assign(rider=lambda f: f["rider"].astype(int) + 100))
    assert demos.subset(slice(0, 3)).ids == demos.ids[:3]
    with pytest.raises(InvalidDemonstrations, match="slice"):
        demos.subset(range(3))
