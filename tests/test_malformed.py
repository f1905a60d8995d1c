"""Random malformed input, driven by hypothesis: nothing but a RevealedError escapes. Named cases: test_errors.py."""

import contextlib

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

import revealed as rv
from models import counts, dense, random_mdp, shuffled
from revealed.errors import RevealedError

GOOD = dense(random_mdp(4, 2, seed=1))
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
QUIET = settings(max_examples=150, deadline=None, suppress_health_check=TOLERATED, derandomize=True)


@pytest.mark.filterwarnings("ignore")
@QUIET
@given(st.dictionaries(st.sampled_from(ARGUMENTS), WHATEVER), WHATEVER, st.booleans())
def test_no_other_error_escapes_a_model(options, transitions, good):
    with contextlib.suppress(RevealedError):
        rv.MDP(GOOD if good else transitions, **options)


@pytest.mark.filterwarnings("ignore")
@QUIET
@given(
    WHATEVER, st.dictionaries(st.sampled_from(["ids", "next_state", "n_states", "n_actions"]), WHATEVER), st.booleans()
)
def test_no_other_error_escapes_trajectories(trajectories, options, good):
    with contextlib.suppress(RevealedError):
        pairs = [([0, 1], [0, 1]), ([1], [1])] if good else trajectories
        rv.Demonstrations.from_trajectories(pairs, **({"n_states": 2, "n_actions": 2} | options))


@pytest.mark.filterwarnings("ignore")
@QUIET
@given(WHATEVER, WHATEVER)
def test_no_other_error_escapes_counts(table, starts):
    with contextlib.suppress(RevealedError):
        rv.Demonstrations.from_counts(table, starts)


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
    with contextlib.suppress(RevealedError):
        rv.Demonstrations.from_frame(frame, **({"id": "i", "time": "t", "state": "s", "action": "a"} | options))


@pytest.mark.filterwarnings("ignore")
@QUIET
@given(WHATEVER, WHATEVER, WHATEVER, st.booleans())
def test_no_other_error_escapes_a_linear_reward(features, names, n_actions, good):
    with contextlib.suppress(RevealedError):
        rv.LinearReward(sp.csr_array(np.eye(4)) if good else features, names, n_actions)


@pytest.mark.filterwarnings("ignore")
@QUIET
@given(
    st.dictionaries(st.sampled_from(OPTIONS), WHATEVER, max_size=3),
    st.sampled_from([rv.NFXP, rv.CCP, rv.NPL]),
)
def test_no_other_error_escapes_an_estimator(options, method):
    with contextlib.suppress(RevealedError):
        reward = rv.LinearReward(np.arange(8.0).reshape(4, 2, 1))
        options = {k: v for k, v in options.items() if k != "updates" or method is rv.NPL}
        method(reward, **({"max_iter": 3} | options)).fit(shuffled(4), counts([[3, 1]] * 4))
