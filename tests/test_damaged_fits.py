"""Saved fits that were damaged or edited, part by part, with checksums that hold: none loads with other results.

Every array of the file and every value of its document is edited in turn. A file is refused, or it is the fit: the same
estimates, behaviour, likelihood, gradient, status and standard errors. What nothing follows from, such as names, dates
and seconds, may load as it was edited. `REVEALED_DAMAGE=all` tries every edit on every fit; without it a share of them
is drawn, anew in each run, with a seed that a failure prints.
"""

import hashlib
import io
import json
import os
import random
import re
import secrets
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import revealed as rv
import streets
from models import draw, random_mdp
from networks import random_trips
from revealed.archive import MANIFEST
from revealed.diagnosis import CODES
from revealed.errors import SolverFailed, UnreadableFit
from revealed.linear_solvers import LUSolver
from revealed.voices import marked

ALL = os.environ.get("REVEALED_DAMAGE") == "all"
SHARES = (1.0, 1.0) if ALL else (0.04, 0.01)  # of the edits of arrays, and of the document
SEED = secrets.randbits(32)

MDP = random_mdp(8, 3, seed=1, masked=True, terminal=1, initial=True)
FEATURES = np.random.default_rng(0).normal(size=(8, 3, 2))
REWARD = rv.LinearReward(FEATURES, names=["fuel", "wear"])
DEMOS = draw(MDP, FEATURES @ [1.0, -0.5], 40, 12)
ROADS = random_trips(1, S=10, n=40)
BASE = random_mdp(4, 2, seed=3)
SHORT = rv.simulate(BASE.unroll(3), BASE.unroll(3).uniform_policy(), 40, 3, seed=2)


def estimated() -> Any:
    mdp = random_mdp(4, 2, seed=5)
    demos = rv.simulate(mdp, mdp.uniform_policy(), 30, 20, seed=1)
    x = np.random.default_rng(2).normal(size=(4, 2, 2))
    return rv.NFXP(rv.LinearReward(x)).fit(rv.MDP(rv.estimate_transitions(demos), discount=0.9), demos)


def on_a_horizon() -> Any:
    """With transitions of its own decisions, whose outcomes every pair shares."""
    demos = rv.simulate(WALK, WALK.uniform_policy(), 40, 4, seed=2)
    found = rv.estimate_transitions(demos, LANDING, ["on", "back"])
    reward = rv.LinearReward(FEATURES[:4, :2])
    return rv.NFXP(reward).fit(rv.MDP(found, discount=0.9).unroll(4), demos).with_errors("opg", joint=True)


LANDING = np.stack([(np.arange(4)[:, None] + [1, 3]) % 4, (np.arange(4)[:, None] + [2, 0]) % 4], axis=1)
WALK = rv.MDP(0.7 * np.eye(4)[LANDING[:, :, 0]] + 0.3 * np.eye(4)[LANDING[:, :, 1]], discount=0.9)


ENDS_AT = "11-10 (arrival)", "11-01 (arrival)"
ROAD_DEMAND = {("00-01", ENDS_AT[0]): 20.0, ("01-00", ENDS_AT[1]): 20.0, ("10-00", ENDS_AT[0]): 5.0}


def with_sizes(per: str = "pair") -> Any:
    """Of trips on a network, some links of which have arrival links; the sizes are stated at another reward."""
    network = streets.streets(2).with_arrivals(["11-10", "11-01"])
    drivers = streets.model(network)
    sizes = rv.link_size(network, network.reward(["travel_time", "constant"]), [-1.5, -0.6], ROAD_DEMAND, per=per)
    reward = rv.LinkSizeReward(network.reward(["travel_time", "toll", "constant"]), sizes)
    start = [-1.5, -0.4, -0.6, 0.0]
    return rv.NFXP(reward, start=start, l2=0.01).fit(network.mdp, drivers.simulate(ROAD_DEMAND, seed=0))


FITS: dict[str, Callable[[], Any]] = {
    "NFXP": lambda: rv.NFXP(REWARD).fit(MDP, DEMOS),
    "CCP": lambda: rv.CCP(REWARD, first_step="smoothed").fit(MDP, DEMOS.discount_visits(0.9)),
    "NPL": lambda: rv.NPL(REWARD, updates=2, first_step="smoothed").fit(MDP, DEMOS),
    "settled NPL": lambda: rv.NPL(REWARD, first_step="smoothed").fit(MDP, DEMOS),
    "occupancy": lambda: rv.NFXP(REWARD, weighting="occupancy", first_step="smoothed").fit(MDP, DEMOS),
    "tabular": lambda: rv.NFXP(rv.TabularReward(8), l2=0.1).fit(MDP, DEMOS),
    "estimated": estimated,
    "joint": lambda: estimated().with_errors("robust", joint=True),
    "joint on a horizon": on_a_horizon,
    "sizes": with_sizes,
    "sizes by goal": lambda: with_sizes("goal"),
    "horizon": lambda: rv.NFXP(rv.LinearReward(FEATURES[:4, :2])).fit(BASE.unroll(3), SHORT),
    "bootstrap": lambda: rv.CCP(REWARD).fit(MDP, DEMOS).with_errors("bootstrap", reps=3, seed=1, jobs=1),
    "goals": lambda: rv.NFXP(ROADS.reward).fit(ROADS.mdp, ROADS.demos),
    "goals of NPL": lambda: rv.NPL(ROADS.reward, updates=2).fit(ROADS.mdp, ROADS.demos),
    "stopped": lambda: rv.NFXP(REWARD, max_iter=1, optimizer="lbfgs").fit(MDP, DEMOS),
}


@pytest.fixture(scope="module", params=FITS)
def saved(request, tmp_path_factory) -> tuple[str, Any, Path]:
    fit: Any = FITS[request.param]()
    if fit.chosen is not None:
        _ = fit.drawn
    return request.param, fit, fit.save(tmp_path_factory.mktemp("saved") / "fit.zip")


def results(fit: Any) -> dict[str, Any]:
    """What a fit says of the world, to rounding; errors where they exist."""
    feasible = fit.mdp.feasible
    found = {"theta": fit.theta, "llf": fit.llf, "objective": fit.objective, "reward": fit.reward[feasible]}
    if isinstance(fit, rv.Fit):
        found |= {name: getattr(fit, name)[feasible] for name in ("policy", "q", "pi_tilde")} | {"value": fit.value}
    elif isinstance(fit.reward_model, rv.LinkSizeReward):
        found |= on_roads(fit)
    else:
        found["policy"] = fit.policy_for(fit.goals[0])
    assert len(str(fit.summary())) > 200
    found["flat"] = fit.gradient_norm < 1e-6 or fit.gradient_norm
    found["bse"] = fit.bse.to_numpy() if fit.options["weighting"] == "sample" else 0.0
    for kind in ("robust", "cluster", "opg") if fit.mdp.estimated is not None else ():
        found[f"joint {kind}"] = fit.cov_params(kind=kind, joint=True).to_numpy()
    if fit.mdp.estimated is not None:
        found["estimated again"] = fit.mdp.estimated.reweighted(np.ones(len(fit.mdp.estimated.ids))).matrix.toarray()
    found["other"] = fit.mdp.replace(initial=None).transitions.matrix.toarray()
    return found | {"transitions": fit.mdp.transitions.matrix.toarray(), "discount": fit.mdp.discount}


def on_roads(fit: Any) -> dict[str, Any]:
    """How trips go, and how after a change of the network."""
    model = rv.RouteChoice.of(fit.reward_model.sizes.network, fit)
    passed = pd.DataFrame({"trip": [0] * 3, "sequence": range(3), "link": ["00-01", "01-11", "11-10"]})
    worlds = {
        "as it is": model,
        "closed": model.close(["01-11"]),
        "dearer": model.change("travel_time", {"00-10": 2.0}),
    }
    found = {f"flows {name}": world.flows(ROAD_DEMAND).to_numpy() for name, world in worlds.items()}
    return found | {"ends": model.network.trips(passed).goal_states}


def test_a_file_that_nobody_edited_is_the_fit(saved):
    _, fit, file = saved
    assert outcome(fit, file) == "same"


def same(one: Any, two: Any) -> list[str]:
    """What differs between two fits."""
    here, there = results(one), results(two)
    gone = [name for name in here if not np.allclose(here[name], there[name], rtol=1e-4, atol=1e-5, equal_nan=True)]
    ends = [(len(fit.rows), fit.iterations, fit.rows[-1]["update"]) for fit in (one, two)]
    gone += ["history"] if ends[0] != ends[1] or not _ends_alike(one, two) else []
    gone += ["seconds"] if not 0.0 <= two.seconds < np.inf else []  # which nothing follows from
    gone += ["status"] if two.status.code != one.status.code and not two.status.interrupted else []
    of_data = {marked(note) for fit in (one, two) for note in fit.demonstrations.notes}  # of what is not in the file
    starts = [fit.mdp.initial for fit in (one, two)]  # the user's word, on which notes on coverage depend
    told = [(fit.status.message, *(fit.status.notes if np.array_equal(*starts) else ())) for fit in (one, two)]
    texts = [[_rounded(marked(text)) for text in each] for each in told]
    own = [[text for text in each if text not in of_data] for each in texts]
    return gone + (["texts"] if own[0] != own[1] and not two.status.interrupted else [])


def _rounded(text: str) -> str:
    """The text with norms of a gradient that is rounding as zero: another machine has others."""
    return re.sub(r"(?<=gradient norm )[\d.]+e-1[2-9]", "0.0e+00", text)


def _ends_alike(one: Any, two: Any) -> bool:
    """Whether the last rows tell the same of the end."""
    slack = 11.0 * max(fit.rows[-1]["gradient_norm"] for fit in (one, two))
    ends = [fit.rows[-1]["objective"] for fit in (one, two)]
    return bool(np.isclose(*ends, rtol=1e-4, atol=1e-5 + slack))


def outcome(fit: Any, file: Path) -> str:
    """How a file is taken: "refused", or "same"; whatever else is told."""
    try:
        found = rv.load(file)
    except UnreadableFit:
        return "refused"
    try:
        return "same" if not (gone := same(fit, found)) else f"loads with other {', '.join(gone)}"
    except Exception as error:
        return f"loads and then fails: {type(error).__name__}: {error}"


def try_all(fit: Any, file: Path, edits: Iterator[tuple[str, Any]], share: float) -> tuple[int, list[str]]:
    dice, tried, wrong = random.Random(SEED), 0, []
    target = file.with_name("damaged.zip")
    for what, content in edits:  # which are made when their turn comes
        if dice.random() < share:
            target.write_bytes(packed(content()))
            told = outcome(fit, target)
            tried += 1
            chosen = (
                what.startswith("fit.chosen") and told == "loads with other bse"
            )  # which errors is the user's choice
            wrong += [] if told in ("refused", "same") or chosen else [f"{what}: {told}"]
    return tried, wrong


# arrays


def members(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(parts: dict[str, bytes]) -> bytes:
    """An archive of these members, with a manifest that holds for them."""
    manifest = json.loads(parts[MANIFEST])
    manifest["members"] = {n: hashlib.sha256(part).hexdigest() for n, part in parts.items() if n != MANIFEST}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, part in (parts | {MANIFEST: json.dumps(manifest).encode()}).items():
            archive.writestr(name, part)
    return buffer.getvalue()


def as_npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def altered(array: Any, dice: random.Random) -> Iterator[tuple[str, Any]]:
    """The same array with other numbers, types and shapes."""
    if array.size and array.dtype.kind in "fiu":
        place = dice.randrange(array.size)
        for name, change in (("one more", 1), ("one less", -1), ("much more", 1000)):
            other = array.copy()
            other.reshape(-1)[place] += change
            yield f"{name} at {place}", other
        yield "all more", array + 1
        yield "doubled", array * 2
        yield "turned round", array.reshape(-1)[::-1].reshape(array.shape)
    if array.size and array.dtype.kind == "f":
        for value in (np.nan, np.inf, -np.inf, 0.0):
            other = array.copy()
            other.reshape(-1)[dice.randrange(array.size)] = value
            yield f"{value}", other
        yield "a percent more", array * 1.01
    if array.size and array.dtype.kind == "b":
        other = array.copy()
        other.reshape(-1)[dice.randrange(array.size)] ^= True
        yield "one flipped", other
        yield "all flipped", ~array
    for dtype in ("f4", "i4", "c16", "U8", "?"):
        with np.errstate(all="ignore"):
            yield f"as {dtype}", np.nan_to_num(array).astype(dtype) if array.dtype.kind == "f" else array.astype(dtype)
    yield "one axis more", array[None]
    yield "as one row", array.reshape(1, -1)
    yield "one entry less", array.reshape(-1)[:-1]
    yield "empty", array[:0]


def edited_arrays(file: Path, others: list[dict[str, bytes]]) -> Iterator[tuple[str, Any]]:
    parts, dice = members(file), random.Random(SEED)

    def with_part(name: str, content: bytes) -> Any:
        return lambda: parts | {name: content}

    for name, content in parts.items():
        if name == MANIFEST:
            continue  # every change of the others changes it
        for k in range(3):
            yield f"{name} cut at {k}/3", with_part(name, content[: len(content) * k // 3])
        for other in others:
            if name in other and other[name] != content:
                yield f"{name} of another fit", with_part(name, other[name])
        if name.endswith(".npy"):
            for what, array in altered(np.load(io.BytesIO(content)), dice):
                yield f"{name} {what}", with_part(name, as_npy(array))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_no_array_that_was_edited_loads_with_other_results(saved, tmp_path):
    name, fit, file = saved
    near = {"goals": "goals of NPL", "goals of NPL": "goals", "NFXP": "CCP"}
    near |= {"settled NPL": "CCP"}  # NFXP's arrays would be right: a settled NPL is NFXP (theory E3)
    other = members(FITS[near.get(name, "NFXP")]().save(tmp_path / "other.zip"))
    tried, wrong = try_all(fit, file, edited_arrays(file, [other]), SHARES[0])
    assert tried > 3
    assert not wrong, f"seed {SEED}, {len(wrong)} of {tried} edits of {name}:\n" + "\n".join(wrong)


def test_a_policy_toward_a_goal_says_nothing_of_states_that_do_not_decide(tmp_path):
    fit = FITS["goals of NPL"]()
    parts, name = members(fit.save(tmp_path / "fit.zip")), "stored/log_1.npy"
    log = np.load(io.BytesIO(parts[name]))
    log[np.isinf(log).all(axis=1), 0] = 0.0  # the goal itself, and states without a way to it
    (tmp_path / "edited.zip").write_bytes(packed(parts | {name: as_npy(log)}))
    with pytest.raises(UnreadableFit, match="not probabilities"):
        rv.load(tmp_path / "edited.zip")


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", ">i4", "f8"])
@pytest.mark.parametrize("kind", ["estimated", "goals"])
def test_the_inner_arrays_of_a_sparse_array_are_checked_in_every_type(kind, dtype, tmp_path):
    fit = FITS[kind]()
    parts = members(fit.save(tmp_path / "fit.zip"))
    inner = [name for name in parts if name.endswith(("/indptr.npy", "/indices.npy"))]
    assert any(name.startswith("demonstrations/by_agent") for name in inner)
    for name in inner:
        array = np.load(io.BytesIO(parts[name]))
        cast, target = array.astype(dtype), tmp_path / "edited.zip"
        target.write_bytes(packed(parts | {name: as_npy(cast)}))
        whole = np.dtype(dtype).kind in "iu" and np.array_equal(cast, array)
        assert outcome(fit, target) == ("same" if whole else "refused"), name


@pytest.mark.parametrize("last", [0, -106])
def test_row_ends_that_wrapped_round_are_refused(last, tmp_path):
    """SciPy does not look at the others where the last one is not positive."""
    parts = members(FITS["estimated"]().save(tmp_path / "fit.zip"))
    for name in (name for name in parts if name.endswith("/indptr.npy")):
        ends = np.load(io.BytesIO(parts[name]))
        ends[1:-1], ends[-1] = 1 << 20, last
        (tmp_path / "edited.zip").write_bytes(packed(parts | {name: as_npy(ends)}))
        with pytest.raises(UnreadableFit, match="never decreases"):
            rv.load(tmp_path / "edited.zip")


@pytest.mark.parametrize("rule", ["infeasible", "stay"])
def test_pairs_that_were_never_seen_cannot_be_left_out(rule, tmp_path):
    """The notes count them."""
    demos = draw(MDP, FEATURES @ [1.0, -0.5], 4, 5)
    found = rv.estimate_transitions(demos.lift(MDP), unseen=rule, smoothing=0.5)
    fit = rv.NFXP(REWARD, l2=0.1).fit(rv.MDP(found, discount=0.9), demos)
    file = fit.save(tmp_path / "fit.zip")
    assert found.unseen.size > 0
    assert outcome(fit, file) == "same"
    for name in ("unseen", "unknown"):
        content = members(file) | {f"mdp/estimated/{name}.npy": as_npy(np.zeros(0, dtype=np.intp))}
        (tmp_path / "edited.zip").write_bytes(packed(content))
        told = outcome(fit, tmp_path / "edited.zip")
        assert told == ("refused" if getattr(found, name).size else "same"), name


# the document


def leaves(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the values of a document are, the nodes that hold them included."""
    if path:
        yield path
    for key, part in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from leaves(part, (*path, key))


def others(value: Any) -> list[Any]:
    """What may stand in the place of a value."""
    if isinstance(value, bool):
        return [not value, None, "yes"]
    if isinstance(value, int):
        return [value + 1, -value - 1, float(value), None, str(value), 10**30]
    if isinstance(value, float):
        return [value + 1.0, value * 1.01, 0.0, -value, {"$float": "nan"}, {"$float": "inf"}, None, str(value)]
    if isinstance(value, str):
        return ["converged", "", f"{value}x", None, 3]
    return [None, [], {}, 3, "converged"]


def edited_documents(file: Path) -> Iterator[tuple[str, Any]]:
    parts = members(file)
    whole = json.loads(parts["fit.json"])

    def edited(path: tuple[Any, ...], value: Any) -> Any:
        def make() -> dict[str, bytes]:
            document = json.loads(parts["fit.json"])
            inner = _at(document, path[:-1])
            if value is _GONE:
                del inner[path[-1]]
            else:
                inner[path[-1]] = value
            return parts | {"fit.json": json.dumps(document).encode()}

        return make

    for path in leaves(whole):
        for value in (*others(_at(whole, path)), _GONE):
            yield f"{'.'.join(map(str, path))} = {value!r}", edited(path, value)


_GONE = "left out"


def _at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_no_document_that_was_edited_loads_with_other_results(saved):
    name, fit, file = saved
    tried, wrong = try_all(fit, file, edited_documents(file), SHARES[1])
    assert tried > 0
    assert not wrong, f"seed {SEED}, {len(wrong)} of {tried} edits of {name}:\n" + "\n".join(wrong)


# what must be told apart from what it replaces


def with_document(file: Path, path: tuple[Any, ...], value: Any) -> bytes:
    parts = members(file)
    document = json.loads(parts["fit.json"])
    _at(document, path[:-1])[path[-1]] = value
    return packed(parts | {"fit.json": json.dumps(document).encode()})


@pytest.mark.parametrize("part", ["starts", "steps/time", "steps/agent"])
def test_starts_and_times_are_those_of_the_decisions(part, tmp_path):
    parts = members(FITS["estimated"]().save(tmp_path / "fit.zip"))
    name = f"demonstrations/{part}.npy"
    array = np.load(io.BytesIO(parts[name]))
    for edited in (array[::-1], array * 2, array + 1):
        (tmp_path / "edited.zip").write_bytes(packed(parts | {name: as_npy(edited)}))
        if part == "steps/time" and (edited - array == 1).all():
            continue  # an entry one period later
        with pytest.raises(UnreadableFit, match=r"does not match the decisions|order of the decisions|beyond"):
            rv.load(tmp_path / "edited.zip")


def test_trajectories_without_a_decision_are_starts(tmp_path):
    demos = rv.Demonstrations.from_trajectories([([0, 1, 2], [0, 1, 0]), ([3], []), ([1, 0], [1])], 4, 2)
    fit = rv.NFXP(rv.LinearReward(FEATURES[:4, :2]), l2=0.1).fit(BASE, demos)
    assert rv.load(fit.save(tmp_path / "fit.zip")).demonstrations.starts.tolist() == [1.0, 1.0, 0.0, 1.0]


@pytest.mark.parametrize("code", ["separated", "unidentified", "iteration_limit", "inner_solve_failed", "cycling"])
@pytest.mark.parametrize("kind", ["NFXP", "CCP", "goals"])
def test_a_fit_that_converged_cannot_be_called_otherwise(kind, code, tmp_path):
    fit = FITS[kind]()
    assert fit.converged
    edited = with_document(fit.save(tmp_path / "fit.zip"), ("fit", "status", "fields", "code"), code)
    (tmp_path / "edited.zip").write_bytes(edited)
    with pytest.raises(UnreadableFit, match=f"its status is {code}, but"):
        rv.load(tmp_path / "edited.zip")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("bins", True), ("starts_by_agent", "own"), ("period", [1]), ("notes", "text"), ("columns", []), ("ids", 3)],
        *[("numbered", 1), ("state_labels", True), ("steps", "own"), ("agent_weights", 2.0), ("n_states", "4")],
    ],
)
def test_fields_of_another_kind_are_refused(name, value, tmp_path):
    file = FITS["NFXP"]().save(tmp_path / "fit.zip")
    (tmp_path / "edited.zip").write_bytes(with_document(file, ("fit", "demonstrations", "fields", name), value))
    with pytest.raises(UnreadableFit, match=f"Demonstrations.{name} has the wrong type"):
        rv.load(tmp_path / "edited.zip")


@pytest.mark.parametrize("other", ["the first", None, {"$float": "nan"}])
def test_ids_of_agents_are_distinct(other, tmp_path):
    def rename(fit: Any) -> None:
        ids = _at(fit, ("demonstrations", "fields", "ids", "$tuple"))
        ids[1] = ids[0] if other == "the first" else other

    file = edited(FITS["NFXP"]().save(tmp_path / "fit.zip"), rename)
    with pytest.raises(UnreadableFit, match="ids of agents are not distinct"):
        rv.load(file)


# how a fit ended: labels under which less used to be asked


def edited(file: Path, *changes: Callable[[Any], object], arrays: dict[str, Any] | None = None) -> Path:
    """The file with its document changed, and some of its arrays."""
    parts = members(file)
    document = json.loads(parts["fit.json"])
    for change in changes:
        change(document["fit"])
    others = {f"{name}.npy": as_npy(array) for name, array in (arrays or {}).items()}
    target = file.with_name("edited.zip")
    target.write_bytes(packed(parts | {"fit.json": json.dumps(document).encode()} | others))
    return target


def told(**status: Any) -> Callable[[Any], object]:
    return lambda document: document["status"]["fields"].update(status)


FAILED = told(code="inner_solve_failed")


@pytest.mark.parametrize("name", ["objective", "gradient_norm"])
@pytest.mark.parametrize("kind", ["stopped", "NFXP"])
def test_numbers_of_a_fit_that_is_said_to_have_failed_are_recomputed(kind, name, tmp_path):
    file = FITS[kind]().save(tmp_path / "fit.zip")
    with pytest.raises(UnreadableFit, match=r"the (objective|gradient norm) is"):
        rv.load(edited(file, FAILED, lambda document: document.update({name: document[name] + 1.0})))


@pytest.mark.parametrize("name", ["q", "value", "pi_tilde"])
def test_behaviour_of_a_fit_that_is_said_to_have_failed_is_recomputed(name, tmp_path):
    fit = rv.CCP(REWARD, max_iter=1, optimizer="lbfgs", first_step="smoothed").fit(MDP, DEMOS)
    arrays = {"q": fit.q + 0.5, "value": fit.value + 0.5, "pi_tilde": fit.mdp.uniform_policy()}
    file = edited(fit.save(tmp_path / "fit.zip"), FAILED, arrays={name: np.asarray(arrays[name])})
    with pytest.raises(UnreadableFit, match=r"Bellman|does not follow from"):
        rv.load(file)


def test_a_fit_whose_solver_failed_on_the_way_is_read(tmp_path, monkeypatch):
    calls, whole = iter(range(10**6)), LUSolver.solve_transpose

    def fails_later(self: Any, b: Any) -> Any:
        if next(calls) >= 4:
            raise SolverFailed("it broke")
        return whole(self, b)

    monkeypatch.setattr(LUSolver, "solve_transpose", fails_later)
    fit = rv.CCP(rv.TabularReward(8), optimizer="lbfgs").fit(MDP, DEMOS)
    assert fit.status.code == "inner_solve_failed"
    monkeypatch.undo()
    found = rv.load(fit.save(tmp_path / "fit.zip"))
    assert found.status.message == fit.status.message
    assert same(fit, found) in ([], ["texts"])  # a note that took a solve could not be made with the broken solver


# NPL: whether its updates settled, circled or neither


def circling(seed: int = 54, **options: Any) -> Any:
    """An NPL whose updates circle (see test_status.py), or come to rest slowly with seed 20."""
    rng = np.random.default_rng(seed)
    mdp = rv.MDP(rng.dirichlet(np.full(4, 0.2), size=(4, 2)), discount=0.99)
    reward = rv.LinearReward(rng.normal(size=(4, 2, 1)) * 2)
    counts = rng.integers(0, 20, size=(4, 2)) * 1.0 + (rng.random((4, 2)) < 0.3) * 50
    return rv.NPL(reward, **options).fit(mdp, rv.Demonstrations.from_counts(counts))


def blind(method: Any) -> Any:
    """A fit whose choices do not tell two features apart."""
    reward = rv.LinearReward(np.dstack([FEATURES, FEATURES[:, :, :1]]))
    return method(reward, first_step="smoothed").fit(MDP, DEMOS)


NPLS: dict[str, Callable[[], Any]] = {
    "two updates": FITS["NPL"],
    "settled": FITS["settled NPL"],
    "circling": circling,
    "stopped by the number": lambda: circling(20),
    "unidentified": lambda: blind(rv.NPL),
    "goals": lambda: rv.NPL(ROADS.reward).fit(ROADS.mdp, ROADS.demos),
    "two updates of goals": FITS["goals of NPL"],
    "occupancy": lambda: rv.NPL(REWARD, weighting="occupancy", first_step="smoothed").fit(MDP, DEMOS),
    "neural": lambda: rv.NPL(rv.NeuralReward(FEATURES[:, 0], hidden=(3,), activation="tanh"), updates=3).fit(
        MDP, DEMOS
    ),
}


def at_most_three(monkeypatch: Any, kind: str) -> None:
    if kind == "stopped by the number":
        monkeypatch.setattr("revealed.estimators.MOST_UPDATES", 3)


def test_an_npl_can_be_stopped_by_the_number(monkeypatch):
    at_most_three(monkeypatch, "stopped by the number")
    fit = NPLS["stopped by the number"]()
    assert (fit.status.code, fit.settled) == ("iteration_limit", False)


@pytest.mark.parametrize("without", [False, True])
@pytest.mark.parametrize("kind", NPLS)
def test_npl_that_nobody_edited_is_read(kind, without, tmp_path, monkeypatch):
    at_most_three(monkeypatch, kind)
    fit = NPLS[kind]()
    fit = replace(fit, estimator=None) if without else fit
    assert outcome(fit, fit.save(tmp_path / "fit.zip")) == "same"


def settled(value: bool) -> Callable[[Any], object]:
    return lambda document: document.update(settled=value)


def nobody(document: Any) -> None:
    document["estimator"] = None


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("settled", [told(code="iteration_limit")], "its π̃ is marked as settled"),
        ("settled", [settled(False)], "has not settled"),
        ("settled", [told(code="iteration_limit"), settled(False)], "updates"),
        ("settled", [told(code="iteration_limit"), settled(False), nobody], "updates"),
        ("settled", [told(code="cycling")], "do not cycle"),
        ("settled", [told(code="cycling"), settled(False)], "not settled, but moves by"),
        ("settled", [told(code="unidentified")], "identify all parameters"),
        ("unidentified", [told(code="converged")], "its estimate is unidentified"),
        ("goals", [told(code="unidentified")], "identify all parameters"),
        ("goals", [told(code="iteration_limit")], "its π̃ is marked as settled"),
        ("two updates", [settled(True)], "marked as settled, but moves by"),
        ("two updates", [told(code="iteration_limit")], "its search has ended at a maximum"),
        ("two updates", [told(code="cycling")], "do not cycle"),
        ("two updates of goals", [told(code="iteration_limit")], "its search has ended at a maximum"),
        ("circling", [told(code="converged")], "has not settled"),
        ("circling", [told(code="iteration_limit")], "updates"),
        ("circling", [told(code="converged"), settled(True)], "but moves by"),
        ("stopped by the number", [told(code="converged")], "has not settled"),
        ("stopped by the number", [told(code="converged"), nobody], "has not settled"),
    ],
)
def test_how_the_updates_of_npl_ended_cannot_be_edited(kind, changes, message, tmp_path, monkeypatch):
    at_most_three(monkeypatch, kind)
    with pytest.raises(UnreadableFit, match=message):
        rv.load(edited(NPLS[kind]().save(tmp_path / "fit.zip"), *changes))


def test_updates_that_come_to_rest_do_not_circle(tmp_path):
    """Updates that were asked for, on the way to rest."""
    slow = circling(20, updates=10)
    assert (slow.status.code, slow.settled) == ("converged", False)
    with pytest.raises(UnreadableFit, match="do not cycle"):
        rv.load(edited(slow.save(tmp_path / "fit.zip"), told(code="cycling")))


# every status against every other: those that a file may claim of a fit that ended otherwise

APART = rv.Demonstrations.from_counts(np.array([[0.0, 5], [0, 9], [7, 0], [3, 0]]), starts=np.ones(4))
ONE_WAY = rv.LinearReward(np.stack([np.zeros((4, 1)), np.array([[1.0], [2.0], [-1.0], [-0.5]])], axis=1), ["x"])
EVENLY = rv.MDP(np.full((4, 2, 4), 0.25), discount=0.5)
STOP = {"max_iter": 1, "optimizer": "lbfgs"}
SMALL = rv.NeuralReward(FEATURES[:, 0], hidden=(3,), activation="tanh")
ENDS: dict[str, Callable[[Any], Any]] = {
    "converged": lambda m: m(REWARD).fit(MDP, DEMOS),
    "occupancy": lambda m: m(REWARD, weighting="occupancy").fit(MDP, DEMOS),
    "l2": lambda m: m(REWARD, l2=0.1).fit(MDP, DEMOS),
    "unidentified": lambda m: m(rv.LinearReward(np.dstack([FEATURES, FEATURES[:, :, :1]]))).fit(MDP, DEMOS),
    "stopped": lambda m: m(REWARD, **STOP).fit(MDP, DEMOS),
    "stopped Newton": lambda m: m(REWARD, max_iter=1).fit(MDP, DEMOS),
    "stopped occupancy": lambda m: m(REWARD, weighting="occupancy", **STOP).fit(MDP, DEMOS),
    "separated": lambda m: m(ONE_WAY, first_step="frequency").fit(EVENLY, APART),
    "separated by occupancy": lambda m: m(ONE_WAY, first_step="frequency", weighting="occupancy").fit(EVENLY, APART),
    "hardly any l2": lambda m: m(ONE_WAY, first_step="frequency", l2=1e-12).fit(EVENLY, APART),
    "horizon": lambda m: m(rv.LinearReward(FEATURES[:4, :2])).fit(BASE.unroll(3), SHORT),
    "stopped horizon": lambda m: m(rv.LinearReward(FEATURES[:4, :2]), **STOP).fit(BASE.unroll(3), SHORT),
    "goals": lambda m: m(ROADS.reward).fit(ROADS.mdp, ROADS.demos),
    "stopped goals": lambda m: m(ROADS.reward, **STOP).fit(ROADS.mdp, ROADS.demos),
    "tabular": lambda m: m(rv.TabularReward(8), l2=0.1).fit(MDP, DEMOS),
    "stopped tabular": lambda m: m(rv.TabularReward(8), l2=0.1, max_iter=2).fit(MDP, DEMOS),
    "network": lambda m: m(SMALL, **({"updates": 2} if m is rv.NPL else {})).fit(MDP, DEMOS),
    "stopped network": lambda m: m(SMALL, max_iter=3, **({"updates": 2} if m is rv.NPL else {})).fit(MDP, DEMOS),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("method", [rv.NFXP, rv.CCP, rv.NPL])
def test_no_status_can_be_taken_for_another(method, end, tmp_path):
    """Only an interrupt, of which nothing is left, may be claimed; it makes a fit look no better."""
    fit = ENDS[end](method)
    file = fit.save(tmp_path / "fit.zip")
    assert outcome(fit, file) == "same"
    for code in set(CODES) - {fit.status.code}:
        with pytest.raises(UnreadableFit):
            rv.load(edited(file, told(code=code)))


# texts


@pytest.mark.parametrize("kind", ["NFXP", "CCP", "settled NPL", "goals of NPL", "stopped", "tabular", "estimated"])
def test_the_words_of_a_status_follow_from_its_numbers(kind, tmp_path):
    fit = FITS[kind]()
    file = fit.save(tmp_path / "fit.zip")
    for change in (
        told(message="gradient norm 1.0e-99 <= tol 1.0e-90."),
        told(message={"$words": ["all is well", ["arg", "l2", "1", "2"]]}),
        told(notes={"$tuple": ["the data are perfect."]}),
        told(notes={"$tuple": []}),
    ):
        assert outcome(fit, edited(file, change)) == "same"


# the bootstrap


def with_draws(fit: Any, change: Callable[[Any], Any], file: Path) -> Path:
    """The file with other draws, and all that depends on them."""
    found = fit.drawn
    done = {r: replace(one, theta=new) for (r, one), new in zip(found.done.items(), change(found.theta), strict=True)}
    theta = np.array([done[r].theta for r in found.index])
    kept = {key: replace(one, done=done, theta=theta) for key, one in fit.kept.items() if one is found}
    return replace(fit, kept=kept).save(file)


@pytest.mark.parametrize("kind", ["NFXP", "CCP", "settled NPL", "occupancy", "estimated", "horizon", "goals"])
def test_draws_of_a_bootstrap_come_from_its_agents(kind, tmp_path):
    penalised = rv.NFXP(ROADS.reward, l2=0.01)  # a few trips of these do not determine the weights
    fit = penalised.fit(ROADS.mdp, ROADS.demos) if kind == "goals" else FITS[kind]()
    fit = fit.with_errors("bootstrap", reps=4, seed=2, jobs=1)
    assert not fit.drawn.failures
    again = rv.load(with_draws(fit, lambda draws: draws, tmp_path / "fit.zip"))
    np.testing.assert_array_equal(again.bse, fit.bse)
    for factor in (0.5, 2.0):
        mean = fit.drawn.theta.mean(axis=0)
        file = with_draws(fit, lambda draws, f=factor, m=mean: m + f * (draws - m), tmp_path / "edited.zip")
        with pytest.raises(UnreadableFit, match="is not an estimate from the agents"):
            rv.load(file)


# what used to load


def test_tables_are_known_to_the_last_digit(tmp_path):
    fit = FITS["CCP"]()
    for name in ("policy", "log_policy", "q", "value", "pi_tilde"):
        table = np.asarray(getattr(fit, name)).astype(np.float32)
        with pytest.raises(UnreadableFit):
            rv.load(edited(fit.save(tmp_path / "fit.zip"), arrays={name: table}))


@pytest.mark.parametrize("value", [0.0, np.inf, 5.0])
def test_an_action_that_is_not_offered_has_no_q(value, tmp_path):
    fit = FITS["NFXP"]()
    q = np.array(fit.q)
    q[tuple(np.argwhere(~fit.mdp.feasible)[0])] = value
    with pytest.raises(UnreadableFit, match="infeasible"):
        rv.load(edited(fit.save(tmp_path / "fit.zip"), arrays={"q": q}))


@pytest.mark.parametrize("step", [3, None, "logit"])
def test_the_first_step_is_the_one_that_was_chosen(step, tmp_path):
    file = rv.NPL(REWARD).fit(MDP, DEMOS).save(tmp_path / "fit.zip")
    with pytest.raises(UnreadableFit, match="options of its estimator differ"):
        rv.load(edited(file, lambda document: document["options"].update(first_step=step)))


def edit(file: Path, name: str, change: Callable[[Any], Any]) -> Path:
    """The file with one array changed."""
    parts = members(file)
    target = file.with_name("edited.zip")
    target.write_bytes(packed(parts | {f"{name}.npy": as_npy(change(np.load(io.BytesIO(parts[f"{name}.npy"]))))}))
    return target


def one_earlier(ends: Any) -> Any:
    """The last entry of the first row belongs to the second."""
    return np.concatenate([ends[:1], ends[1:2] - 1, ends[2:]])


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("by_agent/data", lambda a: a / 1e4, "counted by agent are not those counted by decision"),
        ("by_agent/indices", lambda a: a[::-1], "counted by agent are not those counted by decision"),
        ("by_agent/indptr", one_earlier, "are not those of the data"),
        ("joint/data", lambda a: a + 1.0, "counted by agent are not those counted by decision"),
        ("joint/indptr", one_earlier, "do not belong to their decisions"),
        ("model/last_of", lambda a: a[:0], "last_of of the transitions does not follow"),
        ("model/last_of", lambda a: a.astype("f4"), "last_of of the transitions does not follow"),
        ("model/counts", lambda a: a + 1.0, "counts of the transitions does not follow"),
    ],
)
def test_moves_of_estimated_transitions_are_those_of_the_data(name, change, message, tmp_path):
    file = edit(FITS["joint"]().save(tmp_path / "fit.zip"), f"mdp/estimated/{name}", change)
    with pytest.raises(UnreadableFit, match=message):
        rv.load(file)


@pytest.mark.parametrize("name", ["by_agent/indptr", "joint/indptr", "model/groups", "model/landing"])
def test_outcomes_of_estimated_transitions_are_those_of_the_data(name, tmp_path):
    change = one_earlier if name.endswith("indptr") else lambda a: ~a if a.dtype == bool else a + 1
    file = FITS["joint on a horizon"]().save(tmp_path / "fit.zip")
    where = next(part for part in members(file) if part.endswith(f"estimated/{name}.npy"))
    changed = edit(file, where.removesuffix(".npy"), change)
    with pytest.raises(UnreadableFit, match="transitions"):
        rv.load(changed)


WALKED = rv.simulate(WALK, WALK.uniform_policy(), 30, 8, seed=3)
OTHERS = rv.simulate(WALK, WALK.uniform_policy(), 30, 8, seed=4)  # with the same ids
HEAVY = np.arange(30) % 3 + 0.5
ESTIMATES: dict[str, tuple[Any, Any]] = {
    "its own data": (rv.estimate_transitions(WALKED), WALKED),
    "other data": (rv.estimate_transitions(OTHERS, unseen="stay"), WALKED),
    "other weights": (rv.estimate_transitions(WALKED.reweighted(HEAVY)), WALKED),
    "data of other weights": (rv.estimate_transitions(WALKED), WALKED.reweighted(HEAVY)),
    "weights of both": (rv.estimate_transitions(WALKED.reweighted(HEAVY)), WALKED.reweighted(HEAVY)),
    "estimates of other weights": (rv.estimate_transitions(WALKED).reweighted(HEAVY), WALKED),
    "outcomes": (rv.estimate_transitions(WALKED, LANDING), WALKED),
    "outcomes at other probabilities": (rv.estimate_transitions(WALKED, LANDING).at(np.array([0.5])), WALKED),
    "smoothed": (rv.estimate_transitions(WALKED, smoothing=1.0), WALKED),
    "smoothed with other weights": (rv.estimate_transitions(WALKED, smoothing=1.0).reweighted(HEAVY), WALKED),
    "kernel": (rv.estimate_transitions(WALKED, coordinates=np.arange(4.0), bandwidth=1.0), WALKED),
    "some of the agents": (rv.estimate_transitions(WALKED.subset(slice(20))), WALKED),
    "counts": (rv.estimate_transitions(WALKED._without_steps()), WALKED._without_steps()),
    "data that were counted": (rv.estimate_transitions(WALKED._without_steps()), WALKED),
    "discounted visits": (rv.estimate_transitions(WALKED), WALKED.discount_visits(0.9)),
}


@pytest.mark.parametrize("horizon", [None, 8])
@pytest.mark.parametrize("kind", ESTIMATES)
def test_transitions_may_come_from_anywhere(kind, horizon, tmp_path):
    found, demos = ESTIMATES[kind]
    if horizon is not None and demos.steps is None:
        return
    mdp = rv.MDP(found, discount=0.9)
    mdp = mdp if horizon is None else mdp.unroll(horizon)
    fit = rv.NFXP(rv.LinearReward(FEATURES[:4, :2])).fit(mdp, demos)
    again = rv.load(fit.save(tmp_path / "fit.zip"))
    np.testing.assert_array_equal(again.bse, fit.bse)
    np.testing.assert_array_equal(again.mdp.estimated.by_agent.toarray(), found.by_agent.toarray())


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("network/arrival", lambda a: np.where(np.arange(a.size) == 0, a + 1, a)),
        ("network/link_values/travel_time", lambda a: a[:-1]),
        ("network/link_values/travel_time", lambda a: a * 1.01),
        ("network/turn_values/u_turn", lambda a: a[:-1]),
        ("network/slot", lambda a: a + 1),
        ("network/nodes/end", lambda a: a[::-1]),
        ("network/nodes/start", lambda a: a + 100),
        ("at/theta", lambda a: a + [0.0, 1.0]),
        ("demand/origin", lambda a: a[:-1]),
        ("demand/origin", lambda a: np.roll(a, 1)),
        ("demand/destination", lambda a: a + 1),
        ("demand/trips", lambda a: -a),
        ("matrix/data", lambda a: np.append(a[:-1], a[-1] + 0.1)),
        ("matrix/indices", lambda a: a[::-1]),
    ],
)
@pytest.mark.parametrize("kind", ["sizes", "sizes by goal"])
def test_link_sizes_follow_from_their_network_and_demand(kind, name, change, tmp_path):
    file = FITS[kind]().save(tmp_path / "fit.zip")
    with pytest.raises(UnreadableFit):
        rv.load(edit(file, f"reward_model/sizes/{name}", change))


def test_a_size_that_no_trip_of_the_data_uses_is_checked(tmp_path):
    """The sizes were asked for more trips than were observed."""
    network = streets.streets(2)
    trips = streets.model(network).simulate({("00-01", "11-10"): 30.0}, seed=0)
    base = network.reward(["travel_time", "constant"])
    sizes = rv.link_size(network, base, [-1.5, -0.6], {("00-01", "11-10"): 1.0, ("01-00", "11-01"): 1.0})
    fit = rv.NFXP(rv.LinkSizeReward(base, sizes), l2=0.01).fit(network.mdp, trips)
    row = int(np.flatnonzero(sizes.goal == network.index("11-01"))[0])
    place = int(sizes.matrix.indptr[row])
    file = fit.save(tmp_path / "fit.zip")
    assert outcome_of_sizes(file) == "loads"
    edited = edit(file, "reward_model/sizes/matrix/data", lambda a: np.where(np.arange(a.size) == place, a + 0.1, a))
    with pytest.raises(UnreadableFit, match="link sizes are not those"):
        rv.load(edited)


@pytest.mark.parametrize("kind", ["rescaled", "of another network", "closed", "older file"])
def test_features_beside_link_sizes_may_be_others_than_attributes(kind, tmp_path):
    network = streets.streets(2)
    demand = {("00-01", "11-10"): 20.0, ("01-00", "11-01"): 20.0}
    names = ["travel_time", "constant"]
    trips = streets.model(network).simulate(demand, seed=0)
    if kind == "closed":
        network = network.without(["00-10"])
        trips = streets.model(network).simulate(demand, seed=0)
    base = network.reward(names)
    if kind == "rescaled":
        base = rv.LinearReward(network.features(names) * [60.0, 1.0], names, state_labels=network.links)
    if kind == "of another network":
        base = network.with_attribute("travel_time", {"00-10": 3.0}).reward(names)
    sizes = rv.link_size(network, network.reward(names), [-1.5, -0.6], demand)
    reward = rv.LinkSizeReward(base, sizes)
    file = rv.NFXP(reward, l2=0.01).fit(network.mdp, trips).save(tmp_path / "fit.zip")
    if kind == "older file":  # which does not tell
        file = edited(file, lambda document: document["reward_model"]["fields"].pop("shared"))
    assert outcome_of_sizes(file) == "loads"


def outcome_of_sizes(file: Path) -> str:
    fit = rv.load(file)
    sizes = fit.reward_model.sizes
    again = sizes.again(sizes.network, sizes.at)
    return "loads" if abs(again.matrix - sizes.matrix).max() < 1e-9 else "loads with others"


@pytest.mark.parametrize("kind", ["NFXP", "estimated", "horizon", "goals"])
def test_actions_that_a_model_was_made_of_are_its_own(kind, tmp_path):
    """Those of states that are not terminal; `replace` starts from them."""
    fit = FITS[kind]()
    s, a = np.argwhere(fit.mdp.feasible)[-1]
    file = fit.save(tmp_path / "fit.zip")

    def without(mask: Any) -> Any:
        mask[s, a] = False
        return mask

    with pytest.raises(UnreadableFit, match="are not those it was made of"):
        rv.load(edit(file, "mdp/_original/feasible", without))


# the history


def in_last_row(**values: Any) -> Callable[[Any], object]:
    return lambda document: document["rows"][-1].update(values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda document: document["rows"].pop(), "the history has|takes|updates"),
        (lambda document: document.update(rows=[]), "the history has 0 rows"),
        (lambda document: document.update(iterations=document["iterations"] + 1), "rows, but the fit"),
        (lambda document: document.update(seconds=-1.0), "seconds is -1.0"),
        (lambda document: document.update(seconds={"$float": "nan"}), "seconds is nan"),
        (lambda document: document.update(seconds={"$float": "inf"}), "seconds is inf"),
        (lambda document: document.update(seconds=0.0), "takes longer than the fit"),
        (in_last_row(objective=-0.1), "ends at the objective"),
        (in_last_row(gradient_norm=0.5), "ends at a gradient norm"),
        (in_last_row(gradient_norm=-0.5), "not numbers"),
        (in_last_row(seconds=-1.0), "not numbers"),
        (in_last_row(linear_solves=0.5), "not counts"),
        (in_last_row(update=70), "updates"),
    ],
)
def test_the_history_ends_where_the_fit_does(change, message, tmp_path):
    with pytest.raises(UnreadableFit, match=message):
        rv.load(edited(FITS["settled NPL"]().save(tmp_path / "fit.zip"), change))
