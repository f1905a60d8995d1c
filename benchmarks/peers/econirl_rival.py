"""econirl's NFXP, NPL and CCP on Rust's buses, by its public classes and with its own defaults.

It is given the panel as its own type and the transitions as a tensor, so that only the estimation is timed.
"""

from __future__ import annotations

import warnings
from typing import Any

from serving import Handler, serve, timed


def load() -> dict[str, Handler]:
    import econirl
    import numpy as np
    import pandas as pd
    from econirl.core.types import TrajectoryPanel
    from econirl.datasets import rust_bus_reward_spec

    warnings.simplefilter("ignore")  # its remark on thin support is right, and would be repeated at each fit
    held: dict[str, Any] = {}

    def hold(request: dict[str, Any]) -> dict[str, Any]:
        data = np.load(request["file"])
        frame = pd.DataFrame({name: data[name] for name in ("bus", "x", "d")})
        held["panel"] = TrajectoryPanel.from_dataframe(frame, state="x", action="d", id="bus")
        held["T"], held["discount"] = data["T"], float(data["discount"])
        return {}

    def fit(request: dict[str, Any]) -> dict[str, Any]:
        bins = held["T"].shape[-1]
        options = {"n_states": bins, "discount": held["discount"], "utility": rust_bus_reward_spec(bins)}
        if request["method"] == "NFXP":
            model = econirl.NFXP(**options)
        else:
            model = econirl.CCP(**options, num_policy_iterations=1 if request["method"] == "CCP" else -1)
        seconds, _ = timed(lambda: model.fit(held["panel"], transitions=held["T"]))
        # its features are mileage in bins, Rust's and ours a thousandth of it
        scale = {"replacement_cost": 1.0, "operating_cost": 1e3}
        return {
            "seconds": seconds,
            "theta": [model.params_[name] * scale[name] for name in scale],
            "se": [model.se_[name] * scale[name] for name in scale],
            "llf": model.log_likelihood_,
            "iterations": model.n_iter_,
            "converged": model.converged_,
        }

    return {"hold": hold, "fit": fit}


if __name__ == "__main__":
    serve(["econirl", "jax", "numpy"], load)
