"""Too little memory: sizes that a gate lets through are told by the arguments that asked for them."""

import subprocess
import sys

import numpy as np
import pytest

import revealed as rv
from models import bus, random_mdp
from revealed.errors import InvalidDemonstrations, InvalidInput, OutOfMemory, RevealedError
from revealed.gates import within_memory


@within_memory("n", "length")
def draws(n: int, length: int | None = None, seed: int = 0) -> float:
    """Asks for too much."""
    raise MemoryError("Unable to allocate 80 bytes")


@within_memory("agents")
def asks(agents: object) -> float:
    return draws(len(np.atleast_1d(np.asarray(agents))), 5)


def test_the_error_names_the_sizes_and_is_of_both_kinds():
    with pytest.raises(OutOfMemory) as caught:
        draws(7, length=3)
    assert str(caught.value) == "memory ran out at `n=7`, `length=3`. Use smaller sizes, or a machine with more memory."
    assert isinstance(caught.value, MemoryError | InvalidInput)
    assert caught.value.argument == "n"
    with pytest.raises(OutOfMemory, match="at `n=7`\\. Use"):
        draws(7)


@pytest.mark.parametrize(("given", "told"), [([1, 2], "of 2 entries"), (np.ones((2, 3)), r"of shape \(2, 3\)")])
def test_of_functions_within_each_other_the_outer_one_tells(given, told):
    with pytest.raises(OutOfMemory, match=f"at `agents` {told}"):
        asks(given)


def test_a_guarded_function_is_as_it_was():
    assert (draws.__name__, draws.__doc__) == ("draws", "Asks for too much.")
    with pytest.raises(TypeError, match="unexpected keyword argument 'm'"):
        draws(3, m=4)  # type: ignore[call-arg]


LACKING = {
    "rv.simulate(mdp, mdp.uniform_policy(), 20_000, 50)": "n=20000",
    "rv.environments.city(100).demonstrate(3_000_000)": "n=3000000",
    "rv.environments.rust_bus(400_000)": "bins=400000",
    "rv.Demonstrations.from_trajectories([([0, 1], [0])], n_states=10**7, n_actions=2)": "n_states=10000000",
    "rv.Demonstrations.from_counts(np.ones((1_500_000, 3)))": "counts",
}


@pytest.mark.skipif(sys.platform != "linux", reason="address space is limited so on Linux")
@pytest.mark.parametrize("call", LACKING)
def test_what_a_gate_lets_through_is_told(call):
    code = f"""
import resource, numpy as np, revealed as rv, revealed.gates as gates
mdp = rv.MDP([[[0.5, 0.5]] * 2] * 2, 0.9)
rv.simulate(mdp, mdp.uniform_policy(), 2, 2)
rv.environments.city(100).demonstrate(20)
gates.require_memory.__code__ = (lambda *_, **__: None).__code__
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 60_000_000,) * 2)
try:
    {call}
except rv.errors.RevealedError as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.startswith("OutOfMemory memory ran out at"), done.stderr[-600:]
    assert LACKING[call] in done.stdout


def test_estimates_at_the_gate_count_what_is_made_on_the_way(monkeypatch):
    monkeypatch.setattr("revealed.gates.memory_left", lambda: 100_000_000)
    mdp = bus(90)
    calls = [
        (lambda: rv.simulate(mdp, mdp.uniform_policy(), 100_000, 12), InvalidInput),
        (lambda: rv.Demonstrations.from_trajectories([([0], [0])], 10**6, 6), InvalidDemonstrations),
        (lambda: rv.environments.rust_bus(200_000), InvalidInput),
        (lambda: rv.environments.objectworld(size=8, colors=30_000), InvalidInput),
    ]
    for call, kind in calls:
        with pytest.raises(kind, match="a size that fits into memory"):
            call()


def test_simulated_decisions_are_those_of_trajectories_that_are_read():
    """They are made of arrays, without a trajectory each."""
    mdp = random_mdp(6, 2, terminal=1, masked=True, seed=3)
    made = rv.simulate(mdp, mdp.uniform_policy(), 40, 9, seed=1, initial=np.ones(6) / 6)
    steps = made.steps
    assert steps is not None
    pairs = []
    for agent in range(40):
        own = steps[steps.agent == agent]
        assert own.time.tolist() == list(range(own.time.size))
        assert own.first.tolist() == [t == 0 for t in own.time]
        last = own.next_state[-1:].tolist()
        pairs.append(([*own.state.tolist(), *last], own.action.tolist()))
    read = rv.Demonstrations.from_trajectories([p for p in pairs if p[1]], 6, 2)
    assert np.array_equal(read.transition_counts.toarray(), made.transition_counts.toarray())
    assert np.array_equal(read.counts, made.counts)
    assert made.starts.sum() == 40
    assert issubclass(OutOfMemory, RevealedError)
