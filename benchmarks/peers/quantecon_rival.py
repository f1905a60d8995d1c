"""QuantEcon's DiscreteDP in its sparse state-action form: each of its methods on one problem."""

from __future__ import annotations

from typing import Any

from serving import Handler, serve, timed


def load() -> dict[str, Handler]:
    import numpy as np
    import scipy.sparse as sp
    from quantecon.markov import DiscreteDP

    held: dict[str, Any] = {}

    def hold(request: dict[str, Any]) -> dict[str, Any]:
        data = np.load(request["file"])
        S, A = data["reward"].shape
        Q = sp.csr_matrix((data["data"], data["indices"], data["indptr"]), shape=(S * A, S))
        pairs = np.repeat(np.arange(S), A), np.tile(np.arange(A), S)
        held["value"], held["best"] = data["value"], data["best"]
        seconds, held["ddp"] = timed(lambda: DiscreteDP(data["reward"].reshape(-1), Q, float(data["discount"]), *pairs))
        return {"seconds": seconds}

    def solve(request: dict[str, Any]) -> dict[str, Any]:
        seconds, found = timed(
            lambda: held["ddp"].solve(method=request["method"], epsilon=request["epsilon"], max_iter=1_000_000)
        )
        gap = float(np.abs(found.v - held["value"]).max())
        others = int(np.count_nonzero(~held["best"][np.arange(found.sigma.size), found.sigma]))
        return {"seconds": seconds, "iterations": int(found.num_iter), "gap": gap, "others": others}

    return {"hold": hold, "solve": solve}


if __name__ == "__main__":
    serve(["quantecon", "numba", "numpy"], load)
