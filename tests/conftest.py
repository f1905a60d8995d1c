"""What the tests share: plugins, one hypothesis profile, and the zoo's fixtures."""

import gc
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import revealed as rv
from networks import GOAL_TRIPS, Trips
from zoo import KINDS, Problem, problem

pytest_plugins = ["plugin_required"]

# Models are tiny here and JAX compiles more than it computes: code that is made quickly will do. Read when JAX starts.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1")

# Of all that the libraries under test have loaded nothing is garbage: looking through it less often saves some 7 %
# of the time.
gc.set_threshold(50_000, 20, 20)

# The same examples in every run: a failure is a failure of the change at hand, never of the dice. Under
# HYPOTHESIS_PROFILE=fresh other ones each time, more of them (HYPOTHESIS_EXAMPLES=600 for as many); a failure prints
# what plays its example again.
_COMMON: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("revealed", derandomize=True, max_examples=30, **_COMMON)
_MANY = int(os.environ.get("HYPOTHESIS_EXAMPLES", "60"))
settings.register_profile("fresh", derandomize=False, max_examples=_MANY, print_blob=True, database=None, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "revealed"))


@pytest.fixture(params=KINDS)
def animal(request: pytest.FixtureRequest) -> Problem:
    """One problem of each kind in turn: γ < 1, γ = 1 with terminal states, masks, an unrolled horizon."""
    return problem(request.param)


@pytest.fixture(scope="module", params=GOAL_TRIPS)
def goal_trips(request: pytest.FixtureRequest) -> Trips:
    """Trips with goals where moves are certain and nothing is discounted, and where both are otherwise."""
    return GOAL_TRIPS[request.param]


@pytest.fixture(scope="module")
def goal_fit(goal_trips: Trips) -> rv.GoalFit:
    return rv.NFXP(goal_trips.reward).fit(goal_trips.mdp, goal_trips.demos)
