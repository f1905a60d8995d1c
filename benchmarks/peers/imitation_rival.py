"""imitation's MCEIRL on an Objectworld: seconds per gradient step, and its gradient at given weights.

It plans by dense products with (S, A, S) transitions over a finite horizon, in float64; its network is float32.
"""

from __future__ import annotations

from typing import Any

from serving import Handler, serve, timed


def load() -> dict[str, Handler]:
    import numpy as np
    import scipy.sparse as sp
    import torch
    from imitation.algorithms.mce_irl import MCEIRL, mce_occupancy_measures
    from imitation.rewards.reward_nets import BasicRewardNet
    from seals.base_envs import TabularModelPOMDP

    torch.set_num_threads(1)
    held: dict[str, Any] = {}

    def hold(request: dict[str, Any]) -> dict[str, Any]:
        data = np.load(request["file"])
        X, S = data["features"].astype(np.float32), len(data["features"])
        T = sp.csr_matrix((data["data"], data["indices"], data["indptr"])).toarray().reshape(S, -1, S)
        env = TabularModelPOMDP(
            transition_matrix=T,
            observation_matrix=X,
            reward_matrix=np.zeros(S),
            horizon=int(data["horizon"]),
            initial_state_dist=data["initial"],
        )
        sizes = data["hidden"].tolist()
        spaces = env.observation_space, env.action_space
        net = BasicRewardNet(*spaces, use_action=False, use_next_state=False, use_done=False, hid_sizes=sizes)
        put(net, data["theta"])
        # stops only at the number of steps asked for
        held["irl"] = MCEIRL(
            data["visits"], env, net, np.random.default_rng(0), log_interval=None, linf_eps=0.0, grad_l2_eps=0.0
        )
        held["env"], held["net"], held["visits"], held["X"] = env, net, data["visits"], torch.as_tensor(X)
        return {}

    def put(net: Any, theta: Any) -> None:
        """Weights in our order, each layer's matrix (in, out) and bias, into torch's."""
        taken = 0
        with torch.no_grad():
            for p in net.parameters():
                flat = torch.as_tensor(theta[taken : taken + p.numel()], dtype=torch.float32)
                p.copy_(flat.reshape(p.shape[::-1]).T if p.ndim == 2 else flat)
                taken += p.numel()

    def gradient(request: dict[str, Any]) -> dict[str, Any]:
        """In our order, of the visits while decisions are made: imitation counts the state after the last one, too."""
        net = held["net"]
        net.zero_grad()
        r = net(held["X"], None, None, None).reshape(-1)
        D, _ = mce_occupancy_measures(held["env"], reward=r.detach().numpy())
        torch.dot(torch.as_tensor(held["visits"] - D[:-1].sum(axis=0), dtype=torch.float32), r).backward()
        parts = [p.grad.T if p.ndim == 2 else p.grad for p in net.parameters()]
        return {"gradient": torch.cat([part.reshape(-1) for part in parts]).tolist()}

    def steps(request: dict[str, Any]) -> dict[str, Any]:
        """`train` plans once more at its end: the difference of a long and a short run leaves the steps alone."""
        irl, n = held["irl"], request["steps"]
        once, _ = timed(lambda: irl.train(max_iter=1))
        more, _ = timed(lambda: irl.train(max_iter=1 + n))
        return {"seconds": (more - once) / n, "whole": once}

    return {"hold": hold, "gradient": gradient, "steps": steps}


if __name__ == "__main__":
    serve(["imitation", "seals", "torch", "numpy"], load)
