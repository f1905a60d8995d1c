"""What the tests share: plugins, one hypothesis profile, and the zoo's fixtures."""

import pytest
from hypothesis import HealthCheck, settings

from zoo import KINDS, Problem, problem

pytest_plugins = ["plugin_required"]

# The same examples in every run, on every machine: a failure is a failure of the code, never of the dice.
settings.register_profile(
    "revealed", derandomize=True, deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("revealed")


@pytest.fixture(params=KINDS)
def animal(request: pytest.FixtureRequest) -> Problem:
    """One problem of each kind in turn: γ < 1, γ = 1 with terminal states, masks, an unrolled horizon."""
    return problem(request.param)
