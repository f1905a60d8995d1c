"""Every public door, knocked at: nothing but a RevealedError comes out. `tests/fuzz` has the fuzzer itself.

A seed is drawn in each run. A failure prints it, and the command that plays the case again; `FUZZ_SEED=3` gives one.
"""

import os
import secrets
import signal
import time
from collections import defaultdict
from contextlib import chdir
from types import SimpleNamespace
from typing import Any

import pytest

from fuzz import cases, watch
from fuzz.calls import INNER, arguments, perform
from fuzz.cases import ESCAPED, FINE, REFUSED, THEIRS, Case, Outcome, play, some_cases
from fuzz.doors import all_doors, module_doors, thing_doors
from fuzz.pool import POOL, Unkind, value_named
from fuzz.things import THINGS, thing
from revealed.errors import InvalidInput, RevealedError

SECONDS = float(os.environ.get("FUZZ_SECONDS", "60"))
AGAIN = "PYTHONPATH=tests .venv/bin/python -m fuzz --case '{}'"

pytestmark = [pytest.mark.usefixtures("folder"), pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of its own: hostile paths are written to."""
    with chdir(tmp_path_factory.mktemp("fuzz")):
        yield


@pytest.fixture(scope="module")
def valid_calls() -> dict[str, list[Any]]:
    """What came of each kind of door called as it is meant to be: a result, or the error."""
    found: dict[str, list[Any]] = defaultdict(list)
    for door in all_doors():
        try:
            found[door.key].append(perform(door, arguments(door)))
        except Exception as error:
            found[door.key].append(error)
    return found


def test_every_door_has_a_recipe_and_goes_through_somewhere(valid_calls):
    """A new public name needs a line in tests/fuzz/recipes.py, unless the names of its arguments tell enough."""
    failing = {
        key: results[-1] for key, results in valid_calls.items() if all(isinstance(one, Exception) for one in results)
    }
    assert not failing


def test_valid_calls_meet_only_our_own_errors(valid_calls):
    escaped = {
        key: one
        for key, results in valid_calls.items()
        for one in results
        if isinstance(one, Exception) and not isinstance(one, RevealedError)
    }
    assert not escaped


@pytest.mark.parametrize("name", ["fit.derived", "goal fit.derived"])
def test_what_the_library_computes_itself_needs_no_declared_order(name):
    """Only what the caller passes by position does: no other argument is named where the order was sorted."""
    named = {}
    for door in thing_doors(name):
        given = arguments(door)
        try:
            perform(door, given)
        except InvalidInput as refused:
            if "not declared" in str(refused) and refused.argument not in given:
                named[door.name] = refused
    assert not named


# What calls return that is not walked: parts for the library's own use, without arguments of their own to get wrong.
UNWALKED = {
    *("Structure", "Placement", "DeviceModel", "TransitionSlopes", "Evidence", "GoalEvidence", "Influence"),
    *("Identification", "RouteCases", "EachGoal", "Toward", "Moves", "Drives", "Html", "LabelledArray", "Order"),
}


def test_what_public_calls_return_is_walked_too(valid_calls):
    """Results have methods: one of each class is among the things, or it is known not to be for users."""
    walked = {type(thing(name)).__name__ for name in THINGS} | UNWALKED
    returned = {
        f"{type(one).__name__} by {key}"
        for key, results in valid_calls.items()
        for one in results
        if type(one).__module__.startswith("revealed") and not isinstance(one, Exception)
    }
    assert not {name for name in returned if name.partition(" ")[0] not in walked}


def test_exceptions_to_the_walk_still_exist():
    keys = {door.key for door in module_doors()}
    for key in INNER:
        owner, _, part = key.rpartition(".")
        kinds = {type(thing(name)).__name__: type(thing(name)) for name in THINGS}
        known = hasattr(kinds[owner], part) if owner in kinds else key not in keys
        assert known, key


@pytest.mark.parametrize(
    "case",
    [
        *("demos:lift(mdp=text.a)", "demos:lift(mdp=none)", "rv.likelihood_ratio_test(full=object)"),
        *("rv.likelihood_ratio_test(restricted=int.3)", "rv.vuong_test(first=@mdp)", "rv.difference_test(second=none)"),
        *("rv.metrics.expected_return(mdp=array.ones2)", "rv.Chain(mdp=none)", "rv.Chain(stale=@mdp)"),
        *("rv.metrics.starc(chain=text.a)", "rv.demand_of(network=@mdp)", "step.smoothed:estimate(mdp=none)"),
        *("goal fit:log_likelihood_by_trip(demonstrations=@mdp)", "demand:arriving(mdp=dict.empty)"),
        *("sizes:again(network=@mdp)", "route:cases(demand=dict.pairs)", "rv.build_fit_report(sections=int.3)"),
        *("recipe:estimator(method=list.texts)", "nfxp:with_options(nonsense=int.3)", "advice:text(reword=int.3)"),
        *("monte carlo:plot(most=array.ints)", "fit:influence(kind=list.texts)", "rv.solve(progress=series)"),
    ],
)
def test_wrong_objects_are_refused(case):
    assert play(Case.parse(case)).how == REFUSED


@pytest.mark.parametrize(
    "case",
    [
        *("mdp:start(initial=int.1e30)", "mdp:toward(goal=int.1e30)", "mdp:unroll(horizon=int.2^62)"),
        *("mdp:unroll(horizon=int.1e12)", "rv.TabularReward(n_states=int.1e12)", "rv.simulate(n=int.1e12)"),
        *("rv.simulate(length=int.2^62)", "rv.Demonstrations.from_trajectories(n_states=int.1e12)"),
        *("rv.Demonstrations.from_trajectories(n_actions=int.2^63)", "rv.Demonstrations.from_frame(n_states=int.1e30)"),
        *("rv.NeuralReward(hidden=list.huge)", "fit:bootstrap(reps=int.1e12)", "rv.advise(reps=int.1e30)"),
        *("rv.monte_carlo(replications=int.2^62)", "rv.environments.grid_transitions(rows=int.1e12)"),
        *("mdp:toward_state(g=int.1e30)", "city:demonstrate(n=int.1e12)", "rv.environments.garnet(n_states=int.1e12)"),
    ],
)
def test_sizes_beyond_memory_are_refused_before_anything_is_made(case):
    assert play(Case.parse(case)).how == REFUSED


@pytest.mark.parametrize(
    "case",
    [
        *("rv.Demonstrations.from_trajectories(ids=array.void)", "route:elasticity(turns=int.3)"),
        *("route:direction(turns=complex)", "counterfactual:frame(action=int.0)", "goal fit:value_for(origin=complex)"),
        *(
            "goal fit:toward(origin=text.a)",
            "rv.MDP(state_labels=frame.dates)",
            "mdp:replace(state_labels=frame.sparse)",
        ),
        *("rv.MDP(state_labels=list.alike)", "rv.MDP(state_labels=list.lost)", "rv.MDP(initial=malformed.dok)"),
        *("rv.LinearReward(n_actions=int.3)", "rv.LinearReward(state_labels=list.lost)", "rv.CCP(callback=int.1e5000)"),
        *("rv.Demonstrations.from_frame(states=list.lost)", "rv.compare_fits(fits=malformed.none)"),
        *("rv.LinearReward(features=sparse.tall)", "rv.plots.plot_grid(shape=array.digits)"),
        *("fit:simulate(initial=int.1e5000)", "network:turn_index(turn_to=list.deep)", "rv.Recipe(panel=list.digits)"),
        "fit:predict(seed=np.timedelta, deterministic=bool.true)",
        *("route:price(money=int.1e5000)", "rv.Demonstrations(n_states=int.1e5000)", "network:trips(link=pd.na)"),
        *("rv.likelihood_ratio_test(df=int.1e400)", "rv.Demonstrations.from_episodes(episodes=sparse.dok)"),
        *("rv.RoadNetwork.from_frame(attributes=pd.na)", "rv.RoadNetwork.from_frame(end=pd.na)"),
        *("rv.Recipe(first_time=text.digits)", "rv.Recipe(first_time=int.1e5000)"),
        *("reward.roads:aligned(state_labels=list.digits)", "fit:wald_test(hypothesis=tuple.empty)"),
        *("rv.Demonstrations(by_agent=malformed.range)", "rv.Demonstrations(starts_by_agent=malformed.floats)"),
        "difference:text(spare=list.deep, width=int.7)",
    ],
)
def test_what_was_accepted_or_could_not_be_written_in_a_message_is_refused(case):
    assert play(Case.parse(case)).how == REFUSED


@pytest.mark.parametrize("argument", ["policy", "value", "reward", "units"])
@pytest.mark.parametrize("value", ["malformed.falling", "malformed.floats", "malformed.range"])
def test_a_fit_made_by_hand_does_not_touch_what_is_no_array(argument, value):
    """SciPy would sort the inner arrays of a malformed matrix in place, and write beyond them."""
    assert play(Case.parse(f"rv.Fit({argument}={value})")).how in (FINE, REFUSED)


@pytest.mark.parametrize("path", ["text.long", "text.nul", "text.surrogate", "bytes", "text.empty", "none", "int.3"])
@pytest.mark.parametrize(
    "door",
    ["fit:save(path", "rv.load(path", "rv.write_fit_report(path", "rv.Recipe.from_toml(path", "recipe:to_toml(folder"],
)
def test_paths_that_are_none_are_refused(door, path):
    assert play(Case.parse(f"{door}={path})")).how == REFUSED


def test_a_path_below_a_file_is_refused_and_a_long_name_can_be_written():
    assert play(Case.parse("fit:save(path=path.through)")).how == REFUSED
    assert thing("fit").save("x" * 250 + ".zip").is_file()


def test_a_size_is_refused_with_what_it_would_need():
    with pytest.raises(
        InvalidInput, match=r"`horizon`: expected a size that fits into memory \(.*B here\); got 4611686"
    ):
        thing("mdp").unroll(2**62)


# -- the fuzzer itself ------------------------------------------------------------------------------------------------


def judged(error: BaseException | None) -> str:
    def act(**options: Any) -> None:
        if error is not None:
            raise error

    return cases._judged(SimpleNamespace(function=act, parameters={}, key=""), {"nonsense": 1})[0]  # type: ignore[arg-type]


def test_what_counts_as_an_escape():
    assert judged(None) == FINE
    assert judged(InvalidInput("x", "a number", "none")) == REFUSED
    assert judged(RevealedError("no")) == ESCAPED  # it says nothing
    assert judged(Unkind()) == THEIRS
    assert judged(TypeError("f() got an unexpected keyword argument 'nonsense'")) == REFUSED
    for error in (TypeError("no"), KeyError("x"), MemoryError(), RecursionError(), SystemExit(1), ValueError("y")):
        assert judged(error) == ESCAPED


def test_a_result_where_an_error_was_due_is_an_escape(monkeypatch):
    case = Case.parse("mdp:lift(values=complex)")
    assert play(case).how == FINE  # such values are known not to be read
    monkeypatch.setattr("fuzz.cases.may_be_unread", lambda door, argument: False)
    assert play(case).how == ESCAPED


def test_a_case_is_all_in_its_name():
    for case in ("rv.solve(reward=int.1e30)", "goal fit.roads:toward(goal=@mdp.ends, origin=random.17)", "mdp:repr()"):
        assert str(Case.parse(case)) == case


def test_a_seed_decides_which_cases_are_played():
    one, same, other = (some_cases(seed) for seed in (3, 3, 4))
    first = [next(one) for _ in range(300)]
    assert first == [next(same) for _ in range(300)]
    assert first != [next(other) for _ in range(300)]
    assert len({case.door.partition(":")[2] or case.door for case in first}) > 150


def test_every_value_of_the_pool_can_be_made():
    for name in POOL:
        value_named(name)
    assert str(value_named("random.5")) == str(value_named("random.5"))


def test_a_lost_worker_is_a_crash_and_a_silent_one_a_hang(monkeypatch):
    worker = watch.Worker()
    try:
        assert worker.play(Case.parse("rv.solve(reward=text.a)")).how == REFUSED
        worker.process.send_signal(signal.SIGKILL)
        assert worker.play(Case.parse("mdp:repr()")).how == watch.CRASHED
    finally:
        worker.stop()
    quiet = SimpleNamespace(stdin=open(os.devnull, "wb"), stdout=os.fdopen(os.pipe()[0], "rb"), kill=lambda: None)  # noqa: SIM115
    monkeypatch.setattr(watch, "PATIENCE", 0.1)
    (worker.folder).mkdir()
    (worker.folder / "trace.txt").write_text('  File "/x/revealed/mdp.py", line 12 in unroll\n')
    worker.process = SimpleNamespace(**vars(quiet), wait=lambda: None, returncode=-9)  # type: ignore[assignment]
    lost = worker.play(Case.parse("mdp:repr()"))
    assert (lost.how, lost.where) == (watch.HUNG, "mdp.py:12")


@pytest.mark.parametrize(("value", "how"), [("int.1e6", watch.LONG), ("int.1e9", watch.HUNG)])
def test_work_for_a_large_size_may_take_longer_than_a_case_has(monkeypatch, value, how):
    """What is too large for any machine must be refused instead."""

    class Slow:
        def play(self, case: Case) -> Outcome:
            return Outcome(str(case), watch.HUNG)

        def stop(self) -> None:
            pass

    monkeypatch.setattr(watch, "Worker", Slow)
    (outcome,) = watch.played([Case("rv.simulate", (("n", value),))])
    assert (outcome.how, how in watch.FAILURES) == (how, how == watch.HUNG)


@pytest.mark.skipif(SECONDS == 0.0, reason="FUZZ_SECONDS=0")
def test_a_minute_of_cases_meets_only_our_own_errors():
    seed = int(os.environ.get("FUZZ_SEED") or secrets.randbelow(2**31))
    tally, end = watch.Tally(), time.monotonic() + SECONDS
    for outcome in watch.played(some_cases(seed)):
        tally.add(outcome)
        if time.monotonic() > end:
            break
    told = [f"{one.how}: {one.said}, {one.where}\n    {AGAIN.format(one.case)}" for one in tally.failures]
    assert not told, f"seed {seed}, {tally.words()}\n" + "\n".join(told)
