"""`import revealed` is light, and the public names are there."""

import subprocess
import sys

import pytest

import revealed as rv

HEAVY = ("pandas", "jax", "torch", "matplotlib", "rich", "typer", "narwhals", "joblib", "scipy.optimize", "scipy.stats")
NAMES = [
    *("MDP", "Demonstrations", "LinearReward", "TabularReward", "NeuralReward", "TorchReward", "JaxReward"),
    *("NFXP", "MCEIRL", "CCP", "NPL", "Fit", "solve", "solve_hard", "simulate", "Chain", "errors", "first_step"),
]


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_import_loads_nothing_heavy():
    loaded = run("import sys, revealed; print(*sys.modules)").split()
    assert "revealed" in loaded
    assert [name for name in (*HEAVY, "numpy", "scipy") if name in loaded] == []


def test_the_estimators_need_only_numpy_and_scipy():
    loaded = run("import sys, revealed as rv; rv.MDP, rv.Demonstrations, rv.NFXP; print(*sys.modules)").split()
    assert "revealed.estimators" in loaded
    assert [name for name in HEAVY if name in loaded] == []


def test_a_linear_fit_needs_no_heavy_library_either():
    code = """
import sys, numpy as np, revealed as rv
mdp = rv.MDP(np.full((3, 2, 3), 1 / 3))
reward = rv.LinearReward(np.arange(6.0).reshape(3, 2, 1) ** 2)
fit = rv.NFXP(reward).fit(mdp, rv.Demonstrations.from_counts([[3, 1]] * 3))
print(fit.status.code, [m for m in ("pandas", "jax", "torch", "matplotlib", "rich") if m in sys.modules])
"""
    assert run(code).split(maxsplit=1)[1].strip() == "[]"


def test_importing_changes_no_setting_of_the_host():
    code = """
import warnings, os, numpy as np, scipy.sparse.linalg, scipy.sparse.csgraph
before = (list(warnings.filters), np.geterr(), dict(os.environ), np.get_printoptions())
import revealed
print(before == (list(warnings.filters), np.geterr(), dict(os.environ), np.get_printoptions()))
"""
    assert run(code).strip() == "True"


@pytest.mark.parametrize("name", [n for n in NAMES if n != "TorchReward"])
def test_public_names_exist(name):
    assert getattr(rv, name) is not None
    assert name in dir(rv)
    assert name in rv.__all__


@pytest.mark.torch
def test_the_torch_reward_is_public():
    assert rv.TorchReward.__name__ == "TorchReward"


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="nonsense"):
        rv.nonsense  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]


def test_every_error_is_documented_with_a_remedy_and_has_the_common_base():
    classes = [c for c in vars(rv.errors).values() if isinstance(c, type) and issubclass(c, Exception)]
    assert len(classes) >= 10
    for kind in classes:
        assert issubclass(kind, rv.errors.RevealedError)
        assert kind.__doc__ is not None
        assert "Remedy:" in kind.__doc__
    assert issubclass(rv.errors.InvalidInput, ValueError)
