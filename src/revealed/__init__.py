"""revealed: recover what agents want from what they do.

One objective, four methods: NFXP = MCE-IRL, CCP and NPL differ in a single policy π̃. Read the files in the order of
their imports (errors, transitions, linear_solvers, mdp, chain, bellman, demonstrations, matching, simulation, rewards,
pi_tilde, objective, optimize, diagnosis, first_step, fit, estimation, estimators): it is the derivation in
docs/theory.md. Trips that go somewhere: paths, goal_values, goal_rows, goal_cases, route_cases, goal_first_step,
goal_fit, goal_estimation; routes puts them on road networks. How sure an estimate is: inference, bootstrap, nesting,
hypotheses, identification, uncertainty; how well it fits: goodness, coverage. What agents would do otherwise: long_run,
behaviour, counterfactual, demand. How data come in and results stay: frames, bins, panels, episodes; archive, saving,
loading. A reward on another model: alignment, starts, transfer. What comes after judges it all: metrics, environments
(worlds whose reward is known), datasets, montecarlo, advisor, experiments; and fit_report, recipe and commands bring it
to those who do not write Python.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from revealed import datasets, environments, errors, first_step, metrics, plots
    from revealed.advisor import Advice, advise
    from revealed.bellman import solve
    from revealed.bins import Bins, discretize
    from revealed.chain import Chain
    from revealed.clusters import on_cluster
    from revealed.comparison import compare_fits
    from revealed.demonstrations import Demonstrations
    from revealed.estimators import CCP, MCEIRL, NFXP, NPL
    from revealed.fit import Fit
    from revealed.fit_report import build_fit_report, write_fit_report
    from revealed.goal_fit import GoalFit
    from revealed.hard_bellman import solve_hard
    from revealed.hypotheses import difference_test, likelihood_ratio_test, vuong_test
    from revealed.loading import load
    from revealed.mdp import MDP
    from revealed.metrics import evaluate
    from revealed.montecarlo import monte_carlo
    from revealed.recipe import Recipe
    from revealed.rewards.linear import LinearReward
    from revealed.rewards.neural import JaxReward, NeuralReward
    from revealed.rewards.tabular import TabularReward
    from revealed.rewards.torch import TorchReward
    from revealed.routes.choice import RouteChoice
    from revealed.routes.demand import demand_of
    from revealed.routes.link_size import LinkSizeReward, link_size
    from revealed.routes.network import RoadNetwork
    from revealed.simulation import simulate
    from revealed.transition_models import estimate_transitions

__version__ = "0.1.0"

# loaded on first use: `import revealed` costs next to nothing, and `revealed --help` answers at once
_LATE = {
    "Advice": "revealed.advisor",
    "Bins": "revealed.bins",
    "CCP": "revealed.estimators",
    "Chain": "revealed.chain",
    "Demonstrations": "revealed.demonstrations",
    "Fit": "revealed.fit",
    "GoalFit": "revealed.goal_fit",
    "JaxReward": "revealed.rewards.neural",
    "LinearReward": "revealed.rewards.linear",
    "LinkSizeReward": "revealed.routes.link_size",
    "MCEIRL": "revealed.estimators",
    "MDP": "revealed.mdp",
    "NFXP": "revealed.estimators",
    "NPL": "revealed.estimators",
    "NeuralReward": "revealed.rewards.neural",
    "Recipe": "revealed.recipe",
    "RoadNetwork": "revealed.routes.network",
    "RouteChoice": "revealed.routes.choice",
    "TabularReward": "revealed.rewards.tabular",
    "TorchReward": "revealed.rewards.torch",
    "advise": "revealed.advisor",
    "build_fit_report": "revealed.fit_report",
    "compare_fits": "revealed.comparison",
    "datasets": "revealed.datasets",
    "demand_of": "revealed.routes.demand",
    "difference_test": "revealed.hypotheses",
    "discretize": "revealed.bins",
    "environments": "revealed.environments",
    "errors": "revealed.errors",
    "estimate_transitions": "revealed.transition_models",
    "evaluate": "revealed.metrics",
    "first_step": "revealed.first_step",
    "likelihood_ratio_test": "revealed.hypotheses",
    "link_size": "revealed.routes.link_size",
    "load": "revealed.loading",
    "metrics": "revealed.metrics",
    "monte_carlo": "revealed.montecarlo",
    "on_cluster": "revealed.clusters",
    "plots": "revealed.plots",
    "simulate": "revealed.simulation",
    "solve": "revealed.bellman",
    "solve_hard": "revealed.hard_bellman",
    "vuong_test": "revealed.hypotheses",
    "write_fit_report": "revealed.fit_report",
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
    "Advice",
    "Bins",
    "Chain",
    "Demonstrations",
    "Fit",
    "GoalFit",
    "JaxReward",
    "LinearReward",
    "LinkSizeReward",
    "NeuralReward",
    "Recipe",
    "RoadNetwork",
    "RouteChoice",
    "TabularReward",
    "TorchReward",
    "__version__",
    "advise",
    "build_fit_report",
    "compare_fits",
    "datasets",
    "demand_of",
    "difference_test",
    "discretize",
    "environments",
    "errors",
    "estimate_transitions",
    "evaluate",
    "first_step",
    "likelihood_ratio_test",
    "link_size",
    "load",
    "metrics",
    "monte_carlo",
    "on_cluster",
    "plots",
    "simulate",
    "solve",
    "solve_hard",
    "vuong_test",
    "write_fit_report",
]
