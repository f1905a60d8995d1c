"""Real small objects by name, made at first use and kept: models, data, rewards, estimators, fits, and what fits give.

Models have four states and two actions, as many of the pool's arrays have. The part of a name before the first dot is
the kind; one object of each class is enough for coverage, more show how doors behave where there are labels or ends.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

import revealed as rv
import streets
import trips as files
from networks import WINDY_NAMES, random_trips, windy_tables

THINGS: dict[str, Callable[[], Any]] = {}
WITH_TORCH = importlib.util.find_spec("torch") is not None
STATES, ACTIONS, FEATURES = ("a", "b", "c", "d"), ("go", "stay"), ("x", "y")


def made(name: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Under this name."""

    def keep(make: Callable[[], Any]) -> Callable[[], Any]:
        THINGS[name] = make
        return make

    return keep


@cache
def thing(name: str) -> Any:
    """The object of that name, the same one each time."""
    return THINGS[name]()


@cache
def transitions() -> Any:
    """(S, A, S): action 0 leads on, action 1 stays, both with a little noise."""
    on, stay = np.roll(np.eye(4), 1, axis=1), np.eye(4)
    return np.stack([0.8 * on + 0.05, 0.8 * stay + 0.05], axis=1)


def features() -> Any:
    return np.random.default_rng(1).normal(size=(4, 2, 2))


def table() -> Any:
    """A reward (S, A)."""
    return features() @ [0.7, -0.4]


def panel() -> pd.DataFrame:
    return thing("demos.labelled").to_frame()


@made("mdp")
def _mdp() -> Any:
    return rv.MDP(transitions(), discount=0.9)


@made("mdp.labelled")
def _labelled() -> Any:
    return rv.MDP(sp.csr_array(transitions().reshape(8, 4)), 0.9, state_labels=STATES, action_labels=ACTIONS)


@made("mdp.ends")
def _ends() -> Any:
    feasible = np.array([[True, True], [True, False], [True, True], [True, True]])
    initial, ends = [0.5, 0.5, 0.0, 0.0], [False, False, False, True]
    return rv.MDP(transitions(), 1.0, initial=initial, feasible=feasible, terminal=ends)


@made("mdp.unrolled")
def _unrolled() -> Any:
    return thing("mdp").unroll(3)


@made("mdp.device")
def _device() -> Any:
    return thing("mdp").to("cpu")


@made("mdp.estimated")
def _estimated() -> Any:
    return rv.MDP(thing("estimated"), discount=0.9)


@made("estimated")
def _moves() -> Any:
    return rv.estimate_transitions(thing("demos"), unseen="stay")


@made("demos")
def _demos() -> Any:
    mdp = thing("mdp")
    return rv.simulate(mdp, rv.solve(mdp, table()).policy, 30, 10, seed=0)


@made("demos.labelled")
def _demos_labelled() -> Any:
    mdp = thing("mdp.labelled")
    return rv.simulate(mdp, rv.solve(mdp, table()).policy, 30, 10, seed=0)


@made("demos.counts")
def _demos_counts() -> Any:
    return rv.Demonstrations.from_counts([[3, 1], [2, 2], [1, 4], [5, 2]])


@made("demos.trajectories")
def _demos_trajectories() -> Any:
    pairs = [([0, 1, 2, 2], [0, 0, 1, 1]), ([3, 3, 0, 0], [1, 0, 1, 0]), ([1, 1, 2], [1, 0, 0])]
    return rv.Demonstrations.from_trajectories(pairs, 4, 2, ids=["p", "q", "r"])


@made("demos.frame")
def _demos_frame() -> Any:
    return rv.Demonstrations.from_frame(panel(), id="id", time="time", state="state", action="action")


@made("demos.goals")
def _demos_goals() -> Any:
    return _goal_trips().demos


@made("demos.roads")
def _demos_roads() -> Any:
    return thing("route").simulate(DEMAND, seed=0)


@made("demos.ends")
def _demos_ends() -> Any:
    return rv.simulate(thing("mdp.ends"), thing("mdp.ends").uniform_policy(), 30, 10, seed=0)


@cache
def _goal_trips() -> Any:
    return random_trips(3, S=8, A=2, K=2, n=40, goals=3)


@made("mdp.network")
def _mdp_network() -> Any:
    return _goal_trips().mdp


@made("reward.linear")
def _linear() -> Any:
    return rv.LinearReward(features(), FEATURES)


@made("reward.states")
def _by_state() -> Any:
    return rv.LinearReward(np.eye(4)[:, :2], FEATURES, state_labels=STATES)


@made("reward.sparse")
def _sparse() -> Any:
    return rv.LinearReward(sp.csr_array(features().reshape(8, 2)), FEATURES, n_actions=2)


@made("reward.tabular")
def _tabular() -> Any:
    return rv.TabularReward(4)


@made("reward.neural")
def _neural() -> Any:
    return rv.NeuralReward(np.eye(4)[:, :3], hidden=(2,))


@made("reward.jax")
def _jax() -> Any:
    return rv.JaxReward(lambda params, X: X @ params["w"], {"w": np.ones(2)}, np.eye(4)[:, :2])


if WITH_TORCH:

    @made("reward.torch")
    def _torch() -> Any:
        import torch

        torch.manual_seed(0)
        return rv.TorchReward(torch.nn.Linear(2, 1), np.eye(4)[:, :2])


@made("reward.goals")
def _goal_reward() -> Any:
    return _goal_trips().reward


@made("reward.roads")
def _road_reward() -> Any:
    return thing("network").reward(["travel_time", "constant"])


@made("reward.sizes")
def _size_reward() -> Any:
    return rv.LinkSizeReward(thing("reward.roads"), thing("sizes"))


@made("nfxp")
def _nfxp() -> Any:
    return rv.NFXP(thing("reward.linear"))


@made("mceirl")
def _mceirl() -> Any:
    return rv.MCEIRL(thing("reward.linear"))


@made("ccp")
def _ccp() -> Any:
    return rv.CCP(thing("reward.linear"), first_step="smoothed")


@made("npl")
def _npl() -> Any:
    return rv.NPL(thing("reward.linear"), first_step="smoothed")


@made("fit")
def _fit() -> Any:
    return thing("nfxp").fit(thing("mdp"), thing("demos"))


@made("fit.ccp")
def _fit_ccp() -> Any:
    return thing("ccp").fit(thing("mdp.labelled"), thing("demos.labelled"))


@made("fit.npl")
def _fit_npl() -> Any:
    return thing("npl").fit(thing("mdp.estimated"), thing("demos"))


@made("fit.small")
def _fit_small() -> Any:
    return rv.NFXP(rv.LinearReward(features()[..., :1], ["x"])).fit(thing("mdp"), thing("demos"))


@made("fit.tabular")
def _fit_tabular() -> Any:
    return rv.NFXP(thing("reward.tabular")).fit(thing("mdp"), thing("demos"))


@made("fit.neural")
def _fit_neural() -> Any:
    return rv.NFXP(thing("reward.neural"), max_iter=5).fit(thing("mdp"), thing("demos"))


@made("fit.counts")
def _fit_counts() -> Any:
    return thing("nfxp").fit(thing("mdp"), thing("demos.counts"))


@made("fit.ends")
def _fit_ends() -> Any:
    return rv.CCP(thing("reward.linear"), first_step="smoothed").fit(thing("mdp.ends"), thing("demos.ends"))


@made("fit.device")
def _fit_device() -> Any:
    return thing("nfxp").fit(thing("mdp.device"), thing("demos"))


@made("fit.drawn")
def _fit_drawn() -> Any:
    return thing("fit").with_errors("bootstrap", reps=4)


@made("fit.loaded")
def _fit_loaded() -> Any:
    return rv.load(saved())


@made("goal fit")
def _goal_fit() -> Any:
    return rv.NFXP(thing("reward.goals")).fit(thing("mdp.network"), thing("demos.goals"))


@made("fit.derived")
def _fit_derived() -> Any:
    """Of a panel whose labels are in the order of the alphabet, which nobody declared."""
    demos = thing("demos.frame")
    reward = rv.LinearReward(pd.DataFrame({"x": [0.0, 1.0, 3.0, -1.0], "y": [1.0, 0.5, 0.0, 0.2]}, index=list(STATES)))
    return rv.NFXP(reward).fit(rv.MDP(rv.estimate_transitions(demos, unseen="stay"), 0.9), demos)


@made("goal fit.derived")
def _goal_fit_derived() -> Any:
    walks, pairs = windy_tables()
    demos = rv.Demonstrations.from_frame(walks, **WINDY_NAMES)
    mdp = rv.MDP(rv.estimate_transitions(demos, unseen="stay"), 0.9)
    return rv.NFXP(rv.LinearReward.from_frame(pairs, state="square", action="move")).fit(mdp, demos)


@made("goal fit.roads")
def _road_fit() -> Any:
    network, trips = thing("network"), thing("demos.roads")
    return rv.NFXP(thing("reward.roads"), start=[-1.5, -0.6], max_iter=20).fit(network.mdp, trips)


@cache
def saved() -> str:
    """The path of a saved fit."""
    return str(Path(thing("fit").save(os.path.abspath("kept.zip"))))


@cache
def folder() -> str:
    """A folder with files of decisions and features, and descriptions of a fit."""
    where = Path("files").absolute()
    where.mkdir(exist_ok=True)
    files.write(where)
    return str(where)


@made("status")
def _status() -> Any:
    return thing("fit").status


@made("summary")
def _summary() -> Any:
    return thing("fit").summary()


@made("bootstrap")
def _bootstrap() -> Any:
    return thing("fit").bootstrap(reps=3, seed=0)


@made("counterfactual")
def _counterfactual() -> Any:
    return thing("fit").counterfactual({"x": 0.1}, bands="delta")


@made("counterfactual.goals")
def _goal_counterfactual() -> Any:
    return thing("goal fit").counterfactual({thing("goal fit").params.index[0]: -1.0}, bands=None)


@made("demand curve")
def _curve() -> Any:
    return thing("fit").demand_curve("x", [0.1, 0.2], 0, bands="delta")


@made("wald")
def _wald() -> Any:
    return thing("fit").wald_test({"x": 0.0})


@made("vuong")
def _vuong() -> Any:
    return rv.vuong_test(thing("fit"), thing("fit.tabular"))


@made("difference")
def _difference() -> Any:
    return rv.difference_test(thing("fit"), thing("fit.ccp"), reps=6)


@made("comparison")
def _comparison() -> Any:
    return rv.compare_fits([thing("fit"), thing("fit.small")])


@made("advice")
def _advice() -> Any:
    return rv.advise(thing("mdp"), thing("demos"), thing("reward.linear"), reps=2, progress=False)


@made("chain")
def _chain() -> Any:
    return rv.Chain(thing("mdp"), thing("mdp").uniform_policy())


@made("optimum")
def _optimum() -> Any:
    return rv.solve(thing("mdp"), table())


@made("optimum.hard")
def _hard() -> Any:
    return rv.solve_hard(thing("mdp"), table())


@made("truth")
def _truth() -> Any:
    return rv.metrics.Truth(thing("mdp"), table(), thing("mdp").uniform_policy())


@made("scores")
def _scores() -> Any:
    return rv.evaluate(thing("fit"), thing("mdp"), table())


@made("bins")
def _bins() -> Any:
    return rv.discretize(pd.DataFrame({"miles": [0.0, 1.0, 2.0, 5.0], "age": [1, 2, 3, 4]}), ["miles", "age"], 2)


@made("recipe")
def _recipe() -> Any:
    return _described(**flags())


def flags() -> dict[str, Any]:
    """How a fit of files is described."""
    where = folder()
    columns = {"features": f"{where}/stations.csv", "columns": ["shops", "green"], "discount": 0.9}
    return {"panel": [f"{where}/trips.csv"], **files.NAMES, **columns}


def _described(**given: Any) -> Any:
    return rv.Recipe(**given)


@made("recipe.roads")
def _road_recipe() -> Any:
    thing("network").links_frame.to_csv("links.csv", index=False)
    trips = pd.DataFrame({"trip": ["p", "p"], "sequence": [1, 2], "link": ["00-01", "01-11"]})
    trips.to_csv("trips.csv", index=False)
    return _described(panel="trips.csv", network="links.csv", columns=["travel_time"], discount=1.0)


@made("network")
def _network() -> Any:
    return streets.streets(2)


DEMAND = {("00-01", "11-10"): 20.0, ("01-00", "11-01"): 20.0}


@made("route")
def _route() -> Any:
    return streets.model(thing("network"))


@made("sizes")
def _sizes() -> Any:
    return rv.link_size(thing("network"), thing("reward.roads"), [-1.5, -0.6], DEMAND)


@made("demand")
def _demand() -> Any:
    return rv.demand_of(thing("demos.roads"), thing("network"))


@made("route comparison")
def _compared() -> Any:
    return thing("route").compare(thing("route").change("toll", 1.0), DEMAND)


@made("expected")
def _expected() -> Any:
    return thing("route").expected(DEMAND)


@made("world.garnet")
def _garnet() -> Any:
    return rv.environments.garnet(4, 2, 2, n_features=2)


@made("world.obstacles")
def _obstacles() -> Any:
    return rv.environments.obstacleworld(size=4)


@made("world.grid")
def _grid() -> Any:
    import gymnasium

    return rv.environments.from_gymnasium(gymnasium.make("FrozenLake-v1"), discount=0.9)


@made("goodness")
def _goodness() -> Any:
    return thing("fit").goodness


@made("world.objects")
def _objects() -> Any:
    return rv.environments.objectworld(size=4, colors=2)


@made("world.car")
def _car() -> Any:
    return rv.environments.mountain_car(bins=5)


@made("world.known")
def _known() -> Any:
    car = thing("world.car")
    return car.with_kernel_transitions(car.drive(20, 30, 0), known=True)


@made("world.bus")
def _bus() -> Any:
    return rv.environments.rust_bus(bins=8, discount=0.9)


@made("city")
def _city() -> Any:
    return rv.environments.city(200)


@made("bus data")
def _bus_data() -> Any:
    return rv.datasets.rust_bus(groups=1)


@made("monte carlo")
def _study() -> Any:
    world = thing("world.garnet")
    return rv.monte_carlo(world, [rv.NFXP(world.reward_model())], replications=2, n=20, length=5, progress=False)


@made("step.frequency")
def _frequency() -> Any:
    return rv.first_step.Frequency()


@made("step.smoothed")
def _smoothed() -> Any:
    return rv.first_step.Smoothed()


@made("step.kernel")
def _kernel() -> Any:
    return rv.first_step.Kernel(np.eye(4)[:, :2])


@made("step.logit")
def _logit() -> Any:
    return rv.first_step.Logit(features())


@made("step.goal logit")
def _goal_logit() -> Any:
    return rv.first_step.GoalLogit()
