"""What the tests share: plugins, one hypothesis profile, and the zoo's fixtures."""

import os

import pytest
from hypothesis import HealthCheck, settings

import revealed as rv
from networks import GOAL_TRIPS, Trips
from zoo import KINDS, Problem, problem

pytest_plugins = ["plugin_required"]

# Models are tiny here and JAX compiles more than it computes: code that is made quickly will do. Read when JAX starts.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1")

# The same examples in every run, on every machine: a failure is a failure of the code, never of the dice.
settings.register_profile(
    "revealed", derandomize=True, deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("revealed")


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
