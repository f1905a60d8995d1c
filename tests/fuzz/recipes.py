"""Arguments of single doors, where their names alone do not tell."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import revealed as rv
import trips as files
from fuzz import things
from fuzz.things import STATES, thing

Call = Callable[[Any], dict[str, Any]]
OPTIONS = ("weighting", "first_step", "l2", "tol", "max_iter", "patience", "learning_rate", "start", "optimizer")
OPTIONS += ("solver", "progress", "callback", "nonsense")
DRAWN = ("reps", "seed", "jobs", "progress")
COLUMNS = ("origin", "destination", "trips")
PANEL = {"id": "id", "time": "time", "state": "state", "action": "action"}

# names that go through **options: each is an argument as good as any
EXTRAS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("NFXP", "MCEIRL", "CCP", "NPL", "Estimator.with_options", "advise"), OPTIONS),
    "MDP.replace": ("discount", "initial", "feasible", "terminal", "transitions", "state_labels", "nonsense"),
    **dict.fromkeys(("Fit.counterfactual", "Fit.demand_curve", "GoalFit.counterfactual"), DRAWN),
    **dict.fromkeys(("Uncertain.with_errors", "Uncertain.cov_params"), DRAWN),
    **{
        f"RouteChoice.{name}": COLUMNS for name in ("flows", "expected", "welfare", "simulate", "elasticity", "compare")
    },
    "RouteChoice.elasticities": COLUMNS,
    "link_size": COLUMNS,
    "Recipe.from_toml": ("method", "panel", "discount", "seed", "nonsense"),
    "World.plot": ("cmap", "label", "vmin", "fontsize", "nonsense"),
    "GridWorld.plot": ("cmap", "label", "vmin", "fontsize", "nonsense"),
    "City.plot": ("cmap", "label", "nonsense"),
    "plots.add_colorbar": ("shrink", "nonsense"),
}


class Several:
    """The values of an argument that takes any number of them."""

    def __init__(self, *values: Any) -> None:
        self.all = values


def fields(name: str) -> dict[str, Any]:
    """What a data class was made of."""
    found = thing(name)
    return {part.name: getattr(found, part.name) for part in dataclasses.fields(found) if part.init}


def world(name: str) -> dict[str, Any]:
    return {k: v for k, v in fields(name).items() if k in ("name", "mdp", "features", "true_reward", "expert", "shape")}


def theta(own: Any) -> Any:
    return np.linspace(-1.0, -0.5, own.n_params)


def cotangent(own: Any) -> dict[str, Any]:
    """θ and a derivative of the size of the reward's table."""
    states = np.shape(own.value(theta(own)))[0]
    return {"theta": theta(own), "cotangent": np.ones((states, 2))}


def gym_env() -> Any:
    import gymnasium

    return gymnasium.make("FrozenLake-v1", is_slippery=False)


def graph() -> Any:
    import networkx

    made = networkx.MultiDiGraph()
    for here, there in ("ab", "bc", "ca", "ba"):
        made.add_edge(here, there, length=1.0)
    return made


def road_links() -> pd.DataFrame:
    return thing("network").to_frame()[0]


def road_turns() -> pd.DataFrame:
    return thing("network").to_frame()[1]


def trip_rows() -> pd.DataFrame:
    return pd.DataFrame({"trip": ["p", "p"], "sequence": [1, 2], "link": ["00-01", "01-11"]})


def config() -> str:
    where = things.folder()
    with open(f"{where}/fit.toml", "w", encoding="utf-8") as file:
        file.write(thing("recipe").to_toml(where))
    return f"{where}/fit.toml"


def cluster() -> str:
    """The address of a cluster in this process."""
    from distributed import LocalCluster

    options: dict[str, Any] = {"processes": False, "dashboard_address": None}
    found: Any = LocalCluster(n_workers=1, threads_per_worker=1, **options)
    return found.scheduler_address


def estimator(own: Any) -> dict[str, Any]:
    return {"reward": thing("reward.linear")}


def first_goal(own: Any) -> dict[str, Any]:
    return {"goal": int(own.goal_states[0]) if own.state_labels is None else own.goals[0]}


def first_param(own: Any) -> str:
    return own.params.index[0]


def like(own: Any) -> np.ndarray:
    """A vector with a number for each state of a chain."""
    return np.ones(own.mdp.n_states)


MODELS: dict[str, Call] = {
    "MDP": lambda own: {"transitions": things.transitions(), "discount": 0.9},
    "MDP.from_frame": lambda own: {
        "frame": thing("mdp.labelled").to_frame(),
        "state": "state",
        "action": "action",
        "next_state": "next_state",
        "probability": "probability",
        "discount": 0.9,
    },
    "MDP.from_gymnasium": lambda own: {"env": gym_env(), "discount": 0.9},
    "MDP.lift": lambda own: {"values": np.arange(4.0)},
    "MDP.state_named": lambda own: {"name": 1 if own.state_labels is None else own.state_labels[1]},
    "MDP.toward": lambda own: {"goal": 1 if own.state_labels is None else own.state_labels[1]},
    "MDP.toward_state": lambda own: {"g": 1},
    "MDP.in_order_of": lambda own: {"other": own},
    "MDP.unroll": lambda own: {"horizon": 2},
    "MDP.replace": lambda own: {"discount": 0.5},
    "MDP.with_labels": lambda own: {"state_labels": [f"s{s}" for s in range(own.n_states)]},
    "Placed.to": lambda own: {"kind": "cpu"},
    "estimate_transitions": lambda own: {"unseen": "stay"},
    "EstimatedTransitions.at": lambda own: {"psi": own.psi},
    "EstimatedTransitions.drawn": lambda own: {"draw": np.zeros(own.psi.size)},
    "EstimatedTransitions.notes_on": lambda own: {"feasible": np.ones((4, 2), dtype=bool)},
    "EstimatedTransitions.offered": lambda own: {
        "feasible": np.ones((4, 2), dtype=bool),
        "terminal": np.zeros(4, dtype=bool),
    },
    "EstimatedTransitions.reweighted": lambda own: {"weights": np.ones(30)},
    "Chain.occupancy": lambda own: {"initial": np.full(4, 0.25)},
    "Chain.occupancy_from": lambda own: {"state": 0, "action": 1},
    "Chain.residual": lambda own: {"x": like(own), "b": like(own)},
    "Chain.soft_value": lambda own: {"reward": things.table()},
    "Chain.solve_pairs": lambda own: {"D": np.ones((4, 2))},
    **{
        f"Chain.{name}": lambda own: {"b": like(own)}
        for name in ("backward", "chord_step", "forward", "solve", "solve_balanced", "solve_relative", "step")
    },
    "Chain.solve_transpose": lambda own: {"b": like(own)},
}
DATA: dict[str, Call] = {
    "Demonstrations": lambda own: fields("demos"),
    "Demonstrations.from_counts": lambda own: {"counts": np.array([[3, 1], [2, 2], [1, 4], [5, 2]])},
    "Demonstrations.from_episodes": lambda own: {
        "episodes": [{"observations": [0, 1, 2], "actions": [0, 1]}, {"observations": [1, 2], "actions": [1]}],
        "n_states": 4,
        "n_actions": 2,
    },
    "Demonstrations.from_frame": lambda own: {"frame": things.panel(), **PANEL},
    "Demonstrations.from_trajectories": lambda own: {
        "trajectories": [([0, 1, 2], [0, 1, 1]), ([1, 2], [1, 1])],
        "n_states": 4,
        "n_actions": 2,
    },
    "Demonstrations.discount_visits": lambda own: {"gamma": 0.9},
    "Demonstrations.lift": lambda own: {"mdp": thing("mdp").unroll(12)},
    "Demonstrations.reweighted": lambda own: {"weights": np.ones(own.n_agents)},
    "Demonstrations.subset": lambda own: {"agents": [0, 1]},
    "Demonstrations.toward": lambda own: {"goal": 1 if own.goal_states is None else own.goals[0]},
    "Bins": lambda own: {"columns": ["x"], "edges": [[0.0, 1.0, 2.0]]},
    "Bins.from_description": lambda own: {"description": thing("bins").describe()},
    "Bins.sql_of_labels": lambda own: {"name": "bin"},
    "Bins.code": lambda own: {"values": Several([0.5, 1.5], [1, 2])},
    "discretize": lambda own: {"frame": pd.DataFrame({"x": [0.0, 1.0, 2.0]}), "column": "x", "bins": 2},
    "simulate": lambda own: {"n": 5, "length": 4, "seed": 0},
    "Recipe": lambda own: things.flags(),
    "Recipe.from_flags": lambda own: {"given": things.flags()},
    "Recipe.from_toml": lambda own: {"path": config()},
    "Description.to_toml": lambda own: {"folder": "."},
    "datasets.rust_bus": lambda own: {"groups": 1},
    "datasets.BusData": lambda own: fields("bus data"),
}
REWARDS: dict[str, Call] = {
    "LinearReward": lambda own: {"features": things.features()},
    "LinearReward.from_frame": lambda own: {"frame": files.stations(), "state": "station"},
    "LinearReward.aligned": lambda own: {"state_labels": own.state_labels or STATES},
    "LinearReward.along": lambda own: {
        "state_labels": STATES,
        "targets": np.tile(np.arange(4), (2, 1)).T,
        "feasible": np.ones((4, 2), dtype=bool),
    },
    "TabularReward.named": lambda own: {"state_labels": STATES},
    "NeuralReward": lambda own: {"features": np.eye(4)[:, :2], "hidden": (2,)},
    "NeuralReward.aligned": lambda own: {"state_labels": STATES},
    "NeuralReward.value": lambda own: {"theta": theta(own)},
    "LinkSizeReward.require_model": lambda own: {"mdp": own.sizes.network.mdp},
    "NeuralReward.usual_l2": lambda own: {"decisions": 100.0},
    "NeuralReward.with_features": lambda own: {"features": np.eye(4)[:, :3]},
    "JaxReward": lambda own: {
        "apply": lambda params, X: X @ params["w"],
        "params": {"w": np.ones(2)},
        "features": np.eye(4)[:, :2],
    },
    "JaxReward.standardized": lambda own: {"features": np.eye(4)[:, :3]},
    "TorchReward": lambda own: {"module": linear_module()},
    "TorchReward.module_at": lambda own: {"theta": theta(own)},
    "LinkSizeReward": lambda own: {"reward": thing("reward.roads"), "sizes": thing("sizes")},
    "LinkSizeReward.toward": lambda own: {"goal": int(own.sizes.goal[0]), "origin": int(own.sizes.origin[0])},
    **{
        f"{kind}Reward.{name}": lambda own: {"theta": theta(own)}
        for kind in ("Linear", "Tabular", "Jax", "Torch", "LinkSize")
        for name in ("value", "jacobian")
    },
    **{f"{kind}Reward.vjp": cotangent for kind in ("Linear", "Tabular", "Jax", "Torch", "LinkSize")},
}


def linear_module() -> Any:
    import torch

    return torch.nn.Linear(2, 1)


ESTIMATION: dict[str, Call] = {
    **dict.fromkeys(("NFXP", "MCEIRL", "CCP"), estimator),
    "NPL": lambda own: {"reward": thing("reward.linear"), "updates": 2},
    "Estimator.refit": lambda own: {"start": np.zeros(2)},
    "Estimator.with_options": lambda own: {"l2": 0.1},
    "advise": lambda own: {"reward": thing("reward.linear"), "reps": 2},
    "Advice": lambda own: fields("advice"),
    "Fit": lambda own: _as_given("fit", rv.Fit),
    "GoalFit": lambda own: _as_given("goal fit", rv.GoalFit),
    "Uncertain.bootstrap": lambda own: {"reps": 2, "seed": 0},
    "Uncertain.covariance": lambda own: {"kind": "opg"},
    "Uncertain.influence": lambda own: {"kind": "robust"},
    "Uncertain.joint_gap": lambda own: {"kind": "robust"},
    "Uncertain.wald_test": lambda own: {"hypothesis": {first_param(own): 0.0}},
    "Uncertain.wide_noise": lambda own: {"kind": "robust", "joint": False},
    "Uncertain.with_errors": lambda own: {"kind": "opg"},
    "Fit.counterfactual": lambda own: {"params": {first_param(own): 0.1}, "bands": None},
    "Fit.demand_curve": lambda own: {"parameter": first_param(own), "values": [0.1], "action": _action(own)},
    "AnyFit.reward_on": lambda own: {"mdp": own.mdp},
    "Fit.predict": lambda own: {"obs": 0, "seed": 0},
    "Fit.simulate": lambda own: {"n": 3, "length": 3, "seed": 0},
    "Fit.table": lambda own: {"what": "policy"},
    "GoalFit.case_table": lambda own: {"goal": int(own.goal_states[0])},
    "GoalFit.counterfactual": lambda own: {"params": {first_param(own): -1.1}, "bands": None},
    "GoalFit.states": lambda own: {"argument": "goal", "given": [own.goals[0]]},
    "GoalFit.simulate": lambda own: {"n": 3, "seed": 0},
    **{
        f"GoalFit.{name}": first_goal
        for name in ("log_policy_for", "policy_for", "q_for", "reward_for", "toward", "value_for")
    },
    "Counterfactual.frame": lambda own: {"quantity": "value"},
    "load": lambda own: {"path": things.saved()},
    "write_fit_report": lambda own: {"path": "report.html"},
    "compare_fits": lambda own: {"fits": [thing("fit"), thing("fit.small")]},
    "difference_test": lambda own: {"first": thing("fit"), "second": thing("fit.ccp"), "reps": 6},
    "likelihood_ratio_test": lambda own: {"restricted": thing("fit.small"), "full": thing("fit")},
    "vuong_test": lambda own: {"first": thing("fit"), "second": thing("fit.tabular")},
    "first_step.Smoothed": lambda own: {"alpha": 1.0},
    "first_step.require_penalty": lambda own: {"l2": 0.1},
}


def _as_given(name: str, kind: type) -> dict[str, Any]:
    import inspect

    return {part: getattr(thing(name), part) for part in inspect.signature(kind).parameters}


def _action(own: Any) -> Any:
    return 0 if own.action_labels is None else own.action_labels[0]


WORLDS: dict[str, Call] = {
    "metrics.Scores": lambda own: {"scores": {"nll": 0.5}, "starts": "uniform"},
    "evaluate": lambda own: {"fit": thing("fit"), "mdp": thing("mdp"), "true_reward": things.table()},
    "metrics.evaluate": lambda own: {"fit": thing("fit"), "mdp": thing("mdp"), "true_reward": things.table()},
    "Truth.evaluate": lambda own: {"fit": thing("fit")},
    "metrics.Truth": lambda own: fields("truth"),
    "metrics.epic": lambda own: {"reward_a": things.table(), "reward_b": -things.table()},
    "metrics.starc": lambda own: {"reward_a": things.table(), "reward_b": -things.table()},
    "environments.city": lambda own: {"n_links": 100},
    "environments.City": lambda own: fields("city"),
    "environments.World": lambda own: world("world.garnet"),
    "environments.GridWorld": lambda own: world("world.obstacles"),
    "environments.from_gymnasium": lambda own: {"env": gym_env(), "discount": 0.9},
    "environments.garnet": lambda own: {"n_states": 5, "n_actions": 2, "branching": 2},
    "environments.grid_transitions": lambda own: {"rows": 2, "columns": 2},
    "environments.mountain_car": lambda own: {"bins": 5, "transitions": "kernel", "trajectories": 20, "length": 30},
    "environments.objectworld": lambda own: {"size": 4, "colors": 2},
    "environments.obstacleworld": lambda own: {"size": 4, "goal": "absorbing", "start": "corner"},
    "environments.rust_bus": lambda own: {"bins": 8, "discount": 0.9},
    "environments.rollout": lambda own: {"env": gym_env(), "policy": np.full((16, 4), 0.25), "n": 2, "seed": 0},
    "World.demonstrate": lambda own: {"n": 3, "length": 3, "seed": 0},
    "World.evaluate": lambda own: {"fit": rv.solve(own.mdp, own.true_reward)},
    "MountainCar.discretise": lambda own: {"drives": own.drive(2, 5, 0)},
    "MountainCar.with_kernel_transitions": lambda own: {"drives": own.drive(20, 30, 0)},
    "City.demonstrate": lambda own: {"n": 3},
    "City.expert_for": lambda own: {"goal": own.network.links[0]},
    "monte_carlo": lambda own: {
        "world": thing("world.garnet"),
        "methods": [rv.NFXP(thing("world.garnet").reward_model())],
        "replications": 2,
        "n": 20,
        "length": 5,
        "progress": False,
    },
    "on_cluster": lambda own: {"address": cluster()},
    "plots.plot_grid": lambda own: {"values": np.arange(4.0), "shape": (2, 2)},
    "plots.plot_arrows": lambda own: {"policy": np.full((4, 4), 0.25), "shape": (2, 2)},
    "plots.plot_objects": lambda own: {"objects": thing("world.objects").objects},
    "plots.plot_plane": lambda own: {"values": np.ones((2, 3)), "x": np.arange(3.0), "y": np.arange(2.0)},
    "plots.plot_states": lambda own: {"values": np.arange(4.0)},
    "plots.name_states": lambda own: {"names": ["a", "b"], "fontsize": 9.0},
    "plots.plot_estimates": lambda own: {"draws": {"NFXP": [0.1, 0.2, 0.3]}, "truth": 0.2},
    "plots.add_colorbar": lambda own: _image(),
}


def _image() -> dict[str, Any]:
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    return {"image": ax.imshow(np.eye(2)), "axes": [ax]}


ROADS: dict[str, Call] = {
    "RoadNetwork": lambda own: fields("network"),
    "RoadNetwork.from_frame": lambda own: {"links": road_links()},
    "RoadNetwork.from_networkx": lambda own: {"graph": graph()},
    "RoadNetwork.from_turns": lambda own: {"turns": road_turns()},
    "RoadNetwork.attribute": lambda own: {"name": "toll"},
    "RoadNetwork.index": lambda own: {"link": "00-01"},
    "RoadNetwork.indices": lambda own: {"links": ["00-01"]},
    "RoadNetwork.trips": lambda own: {"table": trip_rows()},
    "RoadNetwork.turn_index": lambda own: {"turn_from": "00-01", "turn_to": "01-11"},
    "RoadNetwork.turns_between": lambda own: {"source": own.source[:2], "target": own.target[:2]},
    "RoadNetwork.ways_in_words": lambda own: {"link": 0},
    "RoadNetwork.with_arrivals": lambda own: {"destinations": ["11-10"]},
    "RoadNetwork.with_attribute": lambda own: {"name": "new", "values": np.ones(own.n_turns)},
    "RoadNetwork.without": lambda own: {"links": ["10-00"]},
    "RouteChoice": lambda own: {"reward": thing("reward.roads"), "params": [-1.5, -0.6]},
    "RouteChoice.of": lambda own: {"fit": thing("goal fit.roads")},
    "RouteChoice.change": lambda own: {"attribute": "toll", "values": 1.0},
    "RouteChoice.choice_elasticity": lambda own: {"attribute": "toll", "destination": "11-10"},
    "RouteChoice.close": lambda own: {"links": ["10-00"]},
    "RouteChoice.compare": lambda own: {"other": own.change("toll", 1.0)},
    "RouteChoice.elasticities": lambda own: {"attribute": "toll", "links": ["00-01"]},
    "RouteChoice.elasticity": lambda own: {"attribute": "toll"},
    "RouteChoice.link_probabilities": lambda own: {"destination": "11-10"},
    "RouteChoice.log_path_probability": lambda own: {"links": ["00-01", "01-11"]},
    "RouteChoice.path_probability": lambda own: {"links": ["00-01", "01-11"]},
    "RouteChoice.paths": lambda own: {"origin": "00-01", "destination": "11-10", "n": 3},
    "RouteChoice.value": lambda own: {"destination": "11-10"},
    "LinkModel.along": lambda own: {"origin": 0, "turns": np.flatnonzero(own.network.source == 0)[:1]},
    "LinkModel.cases": lambda own: {"demand": thing("demand")},
    "LinkModel.column": lambda own: {"attribute": "toll"},
    "LinkModel.direction": lambda own: {"attribute": "toll"},
    "LinkModel.link": lambda own: {"argument": "link", "label": "00-01"},
    "LinkModel.path": lambda own: {"links": ["00-01", "01-11"]},
    "LinkModel.price": lambda own: {"money": "toll"},
    "LinkModel.toward": lambda own: {"goal": 3},
    "LinkModel.turn_frame": lambda own: {"values": {"x": np.ones(2)}, "rows": np.arange(2)},
    "LinkModel.values_of": lambda own: {"demand": thing("demand")},
    "link_size": lambda own: {"reward": thing("reward.roads"), "params": [-1.5, -0.6]},
    "LinkSizes.again": lambda own: {"at": own.at},
    "LinkSizes.of": lambda own: {"goal": int(own.goal[0]), "origin": int(own.origin[0])},
    "Demand.arriving": lambda own: {"mdp": thing("network").mdp},
    "Demand.keep": lambda own: {"rows": [0]},
    "Demand.starts": lambda own: {"rows": np.array([0])},
    "Demand.where": lambda own: {"row": 0},
    "Demand.words": lambda own: {"row": 0},
}
RECIPES: dict[str, Call] = {**MODELS, **DATA, **REWARDS, **ESTIMATION, **WORLDS, **ROADS}
