"""revealed: recover what agents want from what they do.

One objective, four methods: NFXP = MCE-IRL, CCP and NPL differ in a single policy π̃. Read the files in the order of
their imports (errors, transitions, linear_solvers, mdp, chain, bellman, demonstrations, matching, simulation, rewards,
objective, optimize, diagnosis, first_step, fit, estimation, estimators): it is the derivation in docs/theory.md. How
sure an estimate is: inference, bootstrap, hypotheses, identification, uncertainty. What agents would do otherwise:
long_run, behaviour, counterfactual, demand. What comes after judges it all: metrics, environments (worlds whose reward
is known), datasets, montecarlo, experiments.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from revealed import errors, first_step
from revealed.bellman import solve, solve_hard
from revealed.chain import Chain
from revealed.demonstrations import Demonstrations
from revealed.estimators import CCP, MCEIRL, NFXP, NPL
from revealed.fit import Fit
from revealed.mdp import MDP
from revealed.rewards.linear import LinearReward
from revealed.rewards.tabular import TabularReward
from revealed.simulation import simulate

if TYPE_CHECKING:
    from revealed import datasets, environments, metrics, plots
    from revealed.comparison import compare_fits
    from revealed.hypotheses import difference_test, likelihood_ratio_test
    from revealed.metrics import evaluate
    from revealed.montecarlo import monte_carlo
    from revealed.rewards.neural import JaxReward, NeuralReward
    from revealed.rewards.torch import TorchReward
    from revealed.transition_models import estimate_transitions

__version__ = "0.1.0"

# loaded on first use, so that `import revealed` takes hardly longer than importing NumPy and scipy.sparse
_LATE = {
    "JaxReward": "revealed.rewards.neural",
    "NeuralReward": "revealed.rewards.neural",
    "TorchReward": "revealed.rewards.torch",
    "compare_fits": "revealed.comparison",
    "datasets": "revealed.datasets",
    "difference_test": "revealed.hypotheses",
    "environments": "revealed.environments",
    "estimate_transitions": "revealed.transition_models",
    "evaluate": "revealed.metrics",
    "likelihood_ratio_test": "revealed.hypotheses",
    "metrics": "revealed.metrics",
    "monte_carlo": "revealed.montecarlo",
    "plots": "revealed.plots",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module 'revealed' has no attribute {name!r}")
    module = importlib.import_module(_LATE[name])
    return module if module.__name__ == f"revealed.{name}" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_LATE])


__all__ = [
    "CCP",
    "MCEIRL",
    "MDP",
    "NFXP",
    "NPL",
    "Chain",
    "Demonstrations",
    "Fit",
    "JaxReward",
    "LinearReward",
    "NeuralReward",
    "TabularReward",
    "TorchReward",
    "__version__",
    "compare_fits",
    "datasets",
    "difference_test",
    "environments",
    "errors",
    "estimate_transitions",
    "evaluate",
    "first_step",
    "likelihood_ratio_test",
    "metrics",
    "monte_carlo",
    "plots",
    "simulate",
    "solve",
    "solve_hard",
]
