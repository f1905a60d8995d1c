"""Random malformed input, driven by hypothesis: nothing but a RevealedError escapes. Named cases: test_errors.py."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

import revealed as rv
from models import counts, dense, random_mdp, shuffled
from revealed.errors import RevealedError

MODEL = random_mdp(4, 2, seed=1)
GOOD = dense(MODEL)
ARGUMENTS = ["discount", "initial", "feasible", "terminal", "state_labels", "action_labels"]
OPTIONS = [
    *("weighting", "optimizer", "solver", "l2", "tol", "max_iter", "patience", "learning_rate", "start", "first_step"),
    *("progress", "updates", "nonsense"),
]
NUMBERS = st.one_of(st.integers(-3, 3), st.floats(), st.just(10**400), st.complex_numbers(), st.booleans(), st.none())
ANYTHING = st.recursive(
    st.one_of(NUMBERS, st.text(max_size=3), st.binary(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.tuples(inner, inner), st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=12,
)


@st.composite
def arrays(draw) -> np.ndarray:
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=4)))
    size = int(np.prod(shape))
    kind = draw(st.sampled_from(["float", "int", "bool", "complex", "str", "object"]))
    values = draw(st.lists(st.sampled_from([0.0, 1.0, 0.5, -1.0, np.nan, np.inf, 2.0]), min_size=size, max_size=size))
    if kind in ("int", "bool"):
        values = [0.0 if not np.isfinite(v) else v for v in values]
    return np.array(values).reshape(shape).astype(kind)


@st.composite
def sparse(draw):
    shape = draw(st.sampled_from([(4, 2), (2, 2), (3, 2), (2,), (2, 2, 2), (0, 2), (2, 0)]))
    values = np.array(draw(st.lists(st.sampled_from([0.0, 1.0, -1.0, np.nan]), min_size=8, max_size=8)))
    table = np.resize(values, shape).astype(draw(st.sampled_from([float, complex, bool, np.float32])))
    return sp.coo_array(table)


WHATEVER = st.one_of(ANYTHING, arrays(), sparse(), st.lists(sparse(), max_size=3))
TOLERATED = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
QUIET = settings(max_examples=150, deadline=None, suppress_health_check=TOLERATED)


def only_our_errors(call: Callable[[], Any]) -> bool:
    """Whether a call was refused by an error of the library that says something, or went through."""
    try:
        call()
    except RevealedError as refused:
        return len(str(refused)) > 20
    except Exception as escaped:
        raise AssertionError(f"{type(escaped).__name__} escaped: {escaped}") from escaped
    return True


@pytest.mark.filterwarnings("ignore")
@QUIET
@given(st.dictionaries(st.sampled_from(ARGUMENTS), WHATEVER), WHATEVER, st.booleans())
def test_no_other_error_escapes_a_model(options, transitions, good):
    assert only_our_errors(lambda: rv.MDP(GOOD if good else transitions, **options))


@pytest.mark.filterwarnings("ignore")
@QUIET
@given(
    WHATEVER, st.dictionaries(st.sampled_from(["ids", "next_state", "n_states", "n_actions"]), WHATEVER), st.booleans()
)
def test_no_other_error_escapes_trajectories(trajectories, options, good):
    pairs = [([0, 1], [0, 1]), ([1], [1])] if good else trajectories
    sizes = {"n_states": 2, "n_actions": 2} | options
    assert only_our_errors(lambda: rv.Demonstrations.from_trajectories(pairs, **sizes))


@pytest.mark.filterwarnings("ignore")
@QUIET
@given(WHATEVER, WHATEVER)
def test_no_other_error_escapes_counts(table, starts):
    assert only_our_errors(lambda: rv.Demonstrations.from_counts(table, starts))


@pytest.mark.filterwarnings("ignore")
@QUIET
@given(
    st.dictionaries(st.sampled_from(["i", "t", "s", "a"]), st.lists(ANYTHING, min_size=3, max_size=3), min_size=2),
    st.dictionaries(st.sampled_from(["id", "time", "state", "action", "n_states"]), ANYTHING),
)
def test_no_other_error_escapes_frames(columns, options):
    try:
        frame = pd.DataFrame(columns)
    except Exception:
        reject()  # pandas itself will not have it
    roles = {"id": "i", "time": "t", "state": "s", "action": "a"} | options
    assert only_our_errors(lambda: rv.Demonstrations.from_frame(frame, **roles))


@pytest.mark.filterwarnings("ignore")
@QUIET
@given(WHATEVER, WHATEVER, WHATEVER, st.booleans())
def test_no_other_error_escapes_a_linear_reward(features, names, n_actions, good):
    table = sp.csr_array(np.eye(4)) if good else features
    assert only_our_errors(lambda: rv.LinearReward(table, names, n_actions))


@pytest.mark.filterwarnings("ignore")
@QUIET
@given(
    st.dictionaries(st.sampled_from(OPTIONS), WHATEVER, max_size=3),
    st.sampled_from([rv.NFXP, rv.CCP, rv.NPL]),
)
def test_no_other_error_escapes_an_estimator(options, method):
    reward = rv.LinearReward(np.arange(8.0).reshape(4, 2, 1))
    options = {"max_iter": 3} | {k: v for k, v in options.items() if k != "updates" or method is rv.NPL}
    assert only_our_errors(lambda: method(reward, **options).fit(shuffled(4), counts([[3, 1]] * 4)))


@pytest.mark.filterwarnings("ignore")
@QUIET
@given(WHATEVER, WHATEVER, st.sampled_from([rv.metrics.epic, rv.metrics.starc]))
def test_no_other_error_escapes_a_distance(reward, coverage, distance):
    assert only_our_errors(lambda: distance(MODEL, np.ones((4, 2)), reward))
    assert only_our_errors(lambda: distance(MODEL, GOOD, np.ones((4, 2)), coverage))


@pytest.mark.filterwarnings("ignore")
@QUIET
@given(WHATEVER)
def test_no_other_error_escapes_a_metric(thing):
    decisions = counts([[3, 1]] * 4)
    assert only_our_errors(lambda: rv.metrics.nll(thing, decisions))
    assert only_our_errors(lambda: rv.metrics.evd(MODEL, thing, np.ones((4, 2))))
    assert only_our_errors(lambda: rv.metrics.stochastic_evd(MODEL, np.ones((4, 2)), thing))
    assert only_our_errors(lambda: rv.metrics.excess_nll(MODEL, MODEL.uniform_policy(), thing, thing))
    assert only_our_errors(lambda: rv.evaluate(thing, MODEL, np.ones((4, 2))))


WORLDS = {
    "obstacleworld": ("size", "density", "discount", "scale", "seed", "layout", "expert", "noise"),
    "objectworld": ("colors", "object_probability", "wind", "radii", "metric", "strict", "values", "normalise"),
    "garnet": ("n_states", "n_actions", "branching", "seed", "scale", "n_features", "reach"),
    "rust_bus": ("bins", "increments", "RC", "theta11", "cost", "discount"),
    "mountain_car": ("bins", "transitions", "trajectories", "length", "seed", "bandwidth", "target"),
}


@pytest.mark.filterwarnings("ignore")
@QUIET
@given(st.data(), st.sampled_from(list(WORLDS)))
def test_no_other_error_escapes_a_world(data, name):
    options = data.draw(st.dictionaries(st.sampled_from(WORLDS[name]), WHATEVER, max_size=2))
    small = {"objectworld": {"size": 3}, "mountain_car": {"bins": 4}, "garnet": {"n_states": 9}}
    make = getattr(rv.environments, name)
    assert only_our_errors(lambda: make(**small.get(name, {}) | options))
