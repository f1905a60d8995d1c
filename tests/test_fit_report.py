"""The report of a fit: one page that says what the fit says, whatever the fit, and does no harm."""

import html
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import revealed as rv
from browser import Page, chromium, console
from models import corridor, counts, draw, loop, random_mdp, shuffled
from networks import random_trips, windy_trips
from revealed.errors import InvalidInput
from revealed.estimates import Estimates
from revealed.fit_report import build_fit_report, python_lines, shell_lines, write_fit_report
from revealed.fit_report import material as fit_material
from revealed.fit_report.chapters import MOST_COEFFICIENTS, most_telling
from revealed.fit_report.figures import drawable, states_figure
from revealed.page import tag

SCRIPT, IMAGE, FORMULA = "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', r"$\frac{"


@pytest.fixture
def quick(monkeypatch):
    """Pictures are drawn, so that what cannot be drawn is found out, but once, small and without a layout."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    def render(figure: Any) -> bytes:
        figure.set_layout_engine("none")
        figure.set_dpi(20)
        FigureCanvasAgg(figure).draw()
        return b"a picture"

    monkeypatch.setattr(fit_material, "render_png", render)


@pytest.fixture
def blind(monkeypatch):
    """Pictures are not drawn."""
    monkeypatch.setattr(fit_material, "render_png", lambda figure: b"a picture")


def read(fit: rv.Fit | rv.GoalFit, **options: Any) -> Page:
    page = Page(build_fit_report(fit, **options))
    assert "could not be made" not in page.text()
    return page


def labelled_fit() -> rv.Fit:
    """States, actions and features with names that mean harm."""
    rng = np.random.default_rng(0)
    T = rng.dirichlet(np.full(4, 0.5), size=(4, 3))
    labels = {"state_labels": ["plain", SCRIPT, "two\nlines", "漢字"], "action_labels": ["_hidden", IMAGE, "$x_1$"]}
    mdp = rv.MDP(T, discount=0.9, **labels)
    features = rng.normal(size=(4, 3, 2)) * [1.0, 0.01]
    demos = draw(mdp, features @ [1.0, -80.0], n=100, seed=1)
    return rv.NFXP(rv.LinearReward(features, names=[FORMULA, "a_b"])).fit(mdp, demos)


@pytest.fixture(scope="module")
def evil() -> rv.Fit:
    return labelled_fit()


@pytest.fixture(scope="module")
def written(evil, tmp_path_factory) -> Path:
    return write_fit_report(evil, tmp_path_factory.mktemp("report") / "new" / "report.html", title="Trips <b>$x$</b>")


@pytest.fixture(scope="module")
def page(written) -> Page:
    return Page(written.read_text(encoding="utf-8"))


# what the page says


def test_the_estimates_on_the_page_are_those_of_the_fit(evil, page):
    for name, value in evil.params.items():
        row = page.row(str(name))
        cells = [float(cell.replace("−", "-")) for cell in row[1:]]
        lower, upper = evil.conf_int().loc[name]
        shown = [value, evil.bse[name], evil.tvalues[name], evil.pvalues[name], lower, upper]
        for cell, text, number in zip(cells, row[1:], shown, strict=True):
            assert abs(cell - number) <= 0.5 * 10.0 ** -len(text.partition(".")[2]) + 1e-12
    text = page.text()
    for words in (f"−{-evil.llf:.3f}", f"{evil.aic:.2f}", f"{evil.bic:.2f}", str(evil.nobs), "Converged"):
        assert words in text


def test_totals_on_the_page_are_sums_of_visits_times_probabilities(evil, page):
    n = evil.demonstrations.counts.sum(axis=1)
    for a, label in enumerate(evil.action_labels):
        row = page.row(label)
        assert row[1] == f"{evil.demonstrations.counts[:, a].sum():.0f}"
        assert float(row[2]) == pytest.approx(n @ evil.policy[:, a], abs=0.0051)


def test_the_worst_misfit_on_the_page_is_the_worst_there_is(evil, page):
    n, p = evil.demonstrations.counts.sum(axis=1, keepdims=True), evil.policy
    z = (evil.demonstrations.counts - n * p) / np.sqrt(n * p * (1.0 - p))
    s, a = np.unravel_index(np.abs(z).argmax(), z.shape)
    first = page.rows[page.rows.index(page.row("state", "action", "visits")) + 1]
    assert first[1] == evil.action_labels[a]
    assert first[0] == " ".join(evil.state_labels[s].split())
    assert float(first[-1].replace("−", "-")) == pytest.approx(z[s, a], abs=0.00051)


def test_labels_are_there_as_text_and_never_as_elements(written, page):
    text = page.text("main")
    for label in (SCRIPT, IMAGE, FORMULA, "_hidden", "$x_1$", "two lines", "漢字"):
        assert label in text
    assert page.text("h1") == page.text("title") == "Trips <b>$x$</b>"
    assert not page.all("script", "b")
    assert all(image["src"].startswith("data:image/png") for image in page.all("img"))
    assert SCRIPT not in written.read_text(encoding="utf-8")


def test_the_page_asks_for_nothing_and_is_in_order(page):
    for attributes in (given for _, given in page.found):
        assert not any(name.startswith("on") for name in attributes)
        for name in ("src", "href", "srcset", "action", "data"):
            assert re.match(r"data:|#|$", attributes.get(name, ""))
    assert not page.all("script", "link", "iframe", "object", "base")
    names = [given["id"] for _, given in page.found if "id" in given]
    assert len(names) == len(set(names))
    assert {link["href"].removeprefix("#") for link in page.all("a")} <= set(names)
    levels = [int(tag[1]) for tag, _ in page.found if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert len(page.all("img")) == len(page.all("figure")) == len(page.all("figcaption")) == 4


def test_the_file_is_whole_and_alone_and_comes_out_the_same(evil, written):
    assert [path.name for path in written.parent.iterdir()] == ["report.html"]
    before = written.read_bytes()
    again = write_fit_report(evil, written.parent, title="Trips <b>$x$</b>")  # a folder gets report.html
    assert again == written
    assert again.read_bytes() == before


def test_the_lines_to_go_on_with_run_as_they_stand(evil, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "FIT").mkdir()
    evil.save("FIT")
    scope: dict[str, Any] = {}
    exec(python_lines(evil), scope)
    np.testing.assert_allclose(scope["fit"].theta, evil.theta)
    np.testing.assert_allclose(scope["policy"].to_numpy(), evil.policy)
    assert "coef" in capsys.readouterr().out
    bus = replace(evil, reward_model=rv.LinearReward(np.ones((4, 2)), names=["RC", "b"]))
    assert shell_lines(bus).splitlines()[-1] == "revealed counterfactual FIT --set 'RC*1.1'"
    assert shell_lines(evil).splitlines()[-1] == "revealed counterfactual FIT --discount 0.9"


# whatever the fit


def linear(shape: tuple[int, ...], k: int = 2, seed: int = 0) -> rv.LinearReward:
    return rv.LinearReward(np.random.default_rng(seed).normal(size=(*shape, k)))


def fit_of(mdp: rv.MDP, reward: Any = None, method: Any = rv.NFXP, n: int = 40, shift: float = 0.0, **options: Any):
    truth = np.random.default_rng(5).normal(size=mdp.feasible.shape) + shift
    demos = draw(mdp, truth, n=n, length=10, seed=2)
    return method(reward or linear(mdp.feasible.shape), **options).fit(mdp, demos)


def separated() -> rv.Fit:
    features = np.zeros((4, 2, 2))
    features[:, 1] = [[1, 1], [1, -1], [-1, 1], [-1, -1]]
    return rv.NFXP(rv.LinearReward(features)).fit(shuffled(4), counts([[0, 5], [0, 3], [4, 0], [2, 0]]))


def unrolled() -> rv.Fit:
    base = random_mdp(6, 2)
    pairs = [([0, 1, 2], [0, 1, 0]), ([3, 2, 5], [1, 1, 0]), ([4, 0, 1], [0, 0, 1])]
    demos = rv.Demonstrations.from_trajectories(pairs, 6, 2)
    return rv.NFXP(linear((6, 2)), l2=1e-3).fit(base.unroll(3), demos)


def undiscounted() -> rv.Fit:
    features = np.array([[[-1.0], [0.0]], [[0.0], [0.0]]])
    return rv.NFXP(rv.LinearReward(features), start=[1.0]).fit(loop(), counts([[10, 20], [0, 0]]))


CASES = {
    "tabular": (lambda: fit_of(random_mdp(), rv.TabularReward(12), l2=1e-2), "Converged"),
    "many parameters": (lambda: fit_of(random_mdp(50, 2), rv.TabularReward(50), l2=1e-2), "of 50 are shown"),
    "neural": (
        lambda: fit_of(random_mdp(), rv.NeuralReward(np.eye(12), hidden=(4,)), max_iter=5),
        "have no meaning one by one",
    ),
    "γ = 1, counts only, one parameter": (undiscounted, "2, 1 of them terminal"),
    "masked": (lambda: fit_of(random_mdp(masked=True, terminal=2)), "12, 2 of them terminal"),
    "unrolled": (unrolled, "6 in each of 3 periods"),
    "separated": (separated, "✗ No finite estimate"),
    "unidentified": (lambda: fit_of(random_mdp(), rv.LinearReward(np.ones((12, 1)))), "Not every parameter"),
    "iteration limit": (lambda: fit_of(random_mdp(), max_iter=1), "✗ Stopped early"),
    "one state": (lambda: fit_of(shuffled(1, 3), linear((1, 3))), "1 of 1"),
    "bootstrap": (lambda: fit_of(random_mdp()).with_errors("bootstrap", reps=10, jobs=1, progress=False), "bootstrap"),
    "occupancy": (lambda: fit_of(random_mdp(initial=True), weighting="occupancy"), "Points only"),
    "NPL": (lambda: fit_of(random_mdp(), method=rv.NPL, updates=3), "Dotted lines mark updates of π̃"),
    "many actions": (lambda: fit_of(random_mdp(20, 30, branching=2), method=rv.CCP, n=80), "20 most frequent of 30"),
}


@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_fit_has_a_report(name, quick):
    make, words = CASES[name]
    fit = make()
    page = read(fit)
    text = page.text()
    assert words in text
    assert f"{fit.nobs}" in text
    if not fit.converged:
        assert fit.status.message[1:-2].replace("`", "") in text  # what went wrong, and what to do
    first = page.rows.index(["action", "observed", "expected", "difference", "z"]) + 1
    expected = fit.demonstrations.counts.sum(axis=1) @ fit.policy
    for row in page.rows[first : first + min(20, fit.mdp.n_actions)]:
        assert float(row[1]) == fit.demonstrations.counts[:, int(row[0])].sum()
        assert float(row[2]) == pytest.approx(expected[int(row[0])], abs=0.0051)


def test_a_fit_that_was_saved_has_the_same_report(evil, tmp_path, blind):
    assert build_fit_report(rv.load(evil.save(tmp_path / "fit.zip"))) == build_fit_report(evil)


def test_notes_of_the_data_and_states_never_seen_are_told_once(blind):
    mdp = corridor(8)
    features = np.zeros((8, 2, 1))
    features[:, 1] = 1.0
    table = np.zeros((8, 2))
    table[:3] = [[3, 4], [6, 2], [5, 5]]
    demos = replace(counts(table), notes=("2 rows of 1 id were left out.",))
    text = read(rv.NFXP(rv.LinearReward(features)).fit(mdp, demos)).text("main")
    assert text.count("2 rows of 1 id were left out.") == 1
    for words in ("3 of 8", "6 of 16", "7, 8, 10", "5 states were never visited"):
        assert words in text


def test_maps_are_drawn_where_states_have_places(evil, quick):
    for xy in ([[0, 0], [0, 1], [1, 0], [1, 1]], [[0.3, 0.1], [5, 2], [3, 3], [np.nan, 0]]):
        page = read(evil, coordinates=xy)
        assert "on the map of the states" in page.text()
        assert ("1 state without coordinates not shown." in page.text()) == bool(np.isnan(xy).any())
    with pytest.raises(InvalidInput, match="`coordinates`"):
        build_fit_report(evil, coordinates=[[0, 1]])


def ticks(figure: Any) -> tuple[str, list[float], list[str]]:
    """What stands below the last panel: its name, where the ticks are, and what they are called."""
    ax = figure.axes[-1]
    return ax.get_xlabel(), ax.get_xticks().tolist(), [tick.get_text() for tick in ax.get_xticklabels()]


def test_bins_of_one_column_are_called_by_their_centres():
    bins = rv.discretize(pd.DataFrame({"odometer": np.linspace(195.1, 64_805.5, 50)}), "odometer", bins=30)
    bars = {"reward": np.arange(30.0)}
    name, places, shown = ticks(states_figure(bins.labels, bars, np.arange(30.0), ("odometer", bins.centres[0])))
    assert name == "odometer, centres of bins"
    assert not any("…" in text for text in shown)
    assert places[0] == 0
    assert len(places) == len(shown) == 10
    np.testing.assert_allclose([float(text) for text in shown], bins.centres[0][np.array(places, int)], atol=0.5)
    plain = ticks(states_figure(["a", "b"], {"reward": np.zeros(2)}, np.zeros(2)))
    assert plain == ("state", [0, 1], ["a", "b"])


@pytest.mark.parametrize(
    ("centres", "shown"),
    [
        ([-0.375, 0.125, 0.625], ["−0.38", "0.12", "0.62"]),
        ([5000.0, 15000.0], ["5000", "15000"]),
        ([1e15, 3e15], ["1×10¹⁵", "3×10¹⁵"]),
        ([2.5], ["2.50"]),
    ],
)
def test_centres_have_as_many_decimals_as_tell_them_apart(centres, shown):
    zeros = np.zeros(len(centres))
    assert ticks(states_figure(centres, {"reward": zeros}, zeros, ("x", np.array(centres))))[2] == shown


def test_the_report_of_a_binned_fit_names_the_column(monkeypatch):
    """As it is called: from the door to the figure."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"id": np.repeat(range(20), 10), "t": np.tile(range(10), 20), "miles": rng.random(200)})
    frame["act"] = rng.integers(0, 2, 200)
    bins = rv.discretize(frame, "miles", bins=5)
    demos = rv.Demonstrations.from_frame(frame, id="id", time="t", state=bins, action="act")
    fit = rv.CCP(rv.LinearReward(bins.features), l2=0.1).fit(
        rv.MDP(rv.estimate_transitions(demos, smoothing=1.0)), demos
    )
    given = []

    def spy(labels: Any, rewards: Any, value: Any, along: Any = None) -> Any:
        given.append(along)
        return states_figure(labels, rewards, value, along)

    monkeypatch.setattr("revealed.fit_report.chapters.states_figure", spy)
    rv.build_fit_report(fit)
    assert given[0][0] == "miles"
    np.testing.assert_array_equal(given[0][1], bins.centres[0])


def test_sections_are_added_text_escaped_and_elements_kept(evil, blind):
    page = read(evil, sections=[("Advice & more", "use `NPL` <now>"), ("Table", tag("em", "as it is"))])
    assert page.text("em") == "as it is"
    assert "use NPL <now>" in page.text("p")
    assert "Advice & more" in page.text("nav")
    for wrong in (["text"], [("title", 3)]):
        with pytest.raises(InvalidInput, match=r"`sections`: expected \(title, text\) pairs"):
            build_fit_report(evil, sections=wrong)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidInput, match="`fit`: expected a fit; got"):
        build_fit_report("fit")  # pyright: ignore[reportArgumentType]


def test_a_chapter_that_fails_is_a_note(evil, blind, monkeypatch):
    from revealed.fit_report import chapters as fit_chapters

    def fails(*args: Any) -> Any:
        raise KeyError("no <colour>")

    monkeypatch.setattr(fit_chapters, "choice_figure", fails)
    text = Page(build_fit_report(evil)).text()
    assert "This chapter could not be created: KeyError: 'no <colour>'" in text
    assert "Coverage" in text


def test_of_many_estimates_the_most_significant_are_shown_else_the_largest():
    rng = np.random.default_rng(0)
    coef, bse = rng.normal(size=60), rng.uniform(0.1, 2.0, 60)
    none = np.full(60, np.nan)
    names = tuple(map(str, range(60)))
    index, words = most_telling(Estimates(names, coef, bse, coef / bse, none, none, none))
    assert set(index) == set(np.argsort(-np.abs(coef / bse))[:MOST_COEFFICIENTS])
    assert words == "The 40 with the largest |z| of 60 are shown; `fit.params` has all."
    index, words = most_telling(Estimates(names, coef, none, none, none, none, none))
    assert set(index) == set(np.argsort(-np.abs(coef))[:MOST_COEFFICIENTS])
    assert "40 largest by size of 60" in words
    few = Estimates(names[:3], coef[:3], none[:3], none[:3], none[:3], none[:3], none[:3])
    assert most_telling(few)[0].tolist() == [0, 1, 2]


def test_a_large_model_has_a_small_page(blind):
    S = 20_000
    mdp = corridor_of(S)
    features = np.random.default_rng(0).normal(size=(S, 2, 2))
    table = np.random.default_rng(1).poisson(1.0, (S, 2))
    fit = rv.CCP(rv.LinearReward(features), first_step="smoothed").fit(mdp, counts(table))
    made = build_fit_report(fit)
    assert len(made) < 1e6
    text = Page(made).text()
    for words in ("60 most visited are drawn; 19940 are left out", "20 of", "5000 of the most visited"):
        assert words in text


def corridor_of(S: int) -> rv.MDP:
    """As `corridor`, but sparse."""
    import scipy.sparse as sp

    s = np.arange(S)
    rows, columns = np.concatenate([2 * s, 2 * s + 1]), np.concatenate([np.maximum(s - 1, 0), np.minimum(s + 1, S - 1)])
    return rv.MDP(sp.csr_array((np.ones(2 * S), (rows, columns)), shape=(2 * S, S)), discount=0.5)


@pytest.mark.parametrize(
    ("label", "shown"),
    [("$x$", "$x$"), ("a\nb", "a b"), (("a", 3), "(a, 3)"), ("漢", "?"), ("x" * 40, "x" * 27 + "…"), ("π̃", "π̃")],
)
def test_labels_in_figures_are_one_line_of_known_signs(label, shown):
    assert drawable(label) == shown


# in a browser


@pytest.mark.chromium
def test_a_browser_shows_harmful_names_as_text_and_runs_nothing(written, tmp_path):
    done = chromium(tmp_path, written, "--dump-dom")
    assert done.returncode == 0, done.stderr
    assert console(done) == []
    dom = Page(done.stdout)
    for label in (SCRIPT, IMAGE, FORMULA):
        assert label in dom.text("main")
    assert not dom.all("script")
    assert len(dom.all("img")) == 4
    assert dom.text("title") == "Trips <b>$x$</b>"


@pytest.mark.chromium
def test_on_a_phone_the_page_is_no_wider_than_the_window(written, tmp_path):
    text = html.escape(written.read_text(encoding="utf-8"))
    frame = tmp_path / "frame.html"
    frame.write_text(
        f'<!doctype html><iframe id="f" style="width:320px;height:800px;border:0" srcdoc="{text}"></iframe>'
        "<p id='said'></p><script>f.onload = () => { const page = f.contentDocument.documentElement;"
        "said.textContent = `widths ${page.scrollWidth} ${page.clientWidth}`; }</script>",
        encoding="utf-8",
    )
    said = re.search(r"widths (\d+) (\d+)", chromium(tmp_path, frame, "--dump-dom", "--window-size=1600,1000").stdout)
    assert said is not None
    assert int(said[1]) <= int(said[2]) <= 320


# trips with goals


def goal_fits() -> dict[str, rv.GoalFit]:
    roads, windy = random_trips(1, S=12, n=80), windy_trips(0.9, n=60)
    named = windy.mdp.with_labels([divmod(s, 4) for s in range(16)], ["east", "south", "west", SCRIPT])
    return {
        "NFXP": rv.NFXP(roads.reward).fit(roads.mdp, roads.demos),
        "CCP": rv.CCP(roads.reward).fit(roads.mdp, roads.demos),
        "unsettled": rv.NPL(roads.reward, updates=2).fit(roads.mdp, roads.demos),
        "tabular": rv.NFXP(rv.TabularReward(12), l2=0.1).fit(roads.mdp, roads.demos),
        "named": rv.NFXP(windy.reward).fit(named, windy.demos),
    }


@pytest.mark.parametrize("name", ["NFXP", "CCP", "unsettled", "tabular", "named"])
@pytest.mark.usefixtures("quick")
def test_every_fit_of_trips_has_its_chapters(name):
    fit = goal_fits()[name]
    page = read(fit)
    assert page.text("h1") == f"{fit.method} fit of {fit.n_trips} trips"
    titles = ["Estimates", "Trips", "Use, observed and expected", "Choices, observed and predicted", "The search"]
    assert [title for title in titles if title in page.text("h2")] == titles
    assert "Reward and value" not in page.text("h2")  # a state has one for each goal
    maps = [image["alt"] for image in page.all("img") if image["alt"].startswith("Two maps")]
    assert len(maps) == (name == "named")  # labels are places there
    assert not page.all("script")


@pytest.mark.usefixtures("blind")
def test_trips_and_their_use_on_the_page_are_those_of_the_fit():
    fit = goal_fits()["NFXP"]
    page, llf = read(fit), fit.log_likelihood_by_trip()
    per = llf.to_numpy() / np.bincount(fit.demonstrations.trajectory)
    first = page.rows[page.rows.index(page.row("trip", "from", "to")) + 1]
    assert first[0] == str(llf.index[per.argmin()])
    assert float(first[4].replace("−", "-")) == pytest.approx(llf.iloc[per.argmin()], abs=0.0051)
    flows = fit.flows()
    head = page.rows.index(page.row("state", "observed", "expected", "difference"))
    for row in page.rows[head + 1 : head + 4]:
        observed, expected = flows.loc[int(row[0])]
        assert (float(row[1]), float(row[2])) == (observed, pytest.approx(expected, abs=0.0051))
    assert f"Log likelihood of this fit−{-fit.llf:.3f}" in page.text()
    choice = page.rows[page.rows.index(page.row("state", "choice", "visits")) + 1]
    s, target = int(choice[0]), int(choice[1].removeprefix("to "))
    assert target in fit.mdp.targets[s][fit.mdp.feasible[s]]


@pytest.mark.usefixtures("quick")
def test_a_network_with_coordinates_has_a_map_of_flows():
    city = rv.environments.city(100, seed=0)
    fit = rv.NFXP(city.reward, l2=0.01).fit(city.mdp, city.demonstrate(60, seed=1, destinations=6))
    page = read(fit, network=city.network)
    assert any(image["alt"].startswith(f"Two maps of {city.network.n_links} links") for image in page.all("img"))
    assert page.row("link", "observed", "expected", "difference")
    other = rv.environments.city(300, seed=1).network
    with pytest.raises(InvalidInput, match=r"`network`: expected the rv\.RoadNetwork that the trips were on"):
        build_fit_report(fit, network=other)
    with pytest.raises(InvalidInput, match="`network` requires a fit of trips with goals"):
        build_fit_report(labelled_fit(), network=city.network)


def test_what_to_do_next_with_goals_works(tmp_path, monkeypatch):
    fit = goal_fits()["NFXP"]
    fit.save(tmp_path / "FIT.zip")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {}
    exec(python_lines(fit).replace('"FIT"', '"FIT.zip"'), namespace)
    np.testing.assert_array_equal(namespace["policy"], fit.policy_for(fit.goals[0]))
    pd.testing.assert_frame_equal(namespace["flows"], fit.flows())
    assert namespace["others"].n_agents == 100
    assert shell_lines(fit).splitlines()[0] == f"revealed predict FIT --goal {fit.goals[0]}"
