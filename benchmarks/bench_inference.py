"""How long it takes to fit Rust's bus model and to tell how sure the estimate is.

.venv/bin/python benchmarks/bench_inference.py               a minute
.venv/bin/python benchmarks/bench_inference.py --markdown    the table as docs/performance.md holds it

90 states, γ = 0.9999, a data set of the size of Rust's group 4 with increments estimated from it. Bootstraps estimate
the increments, the first step and θ again in each of 400 replications, in one process where nothing else is said.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from bench_core import Row, best_of, machine, print_markdown, print_table  # first: it sets the thread counts

# isort: split
from monte_carlo_buses import estimated_model

import revealed as rv
from revealed.environments import rust_bus

KINDS = ("hessian", "opg", "robust", "cluster")
REPS = 400
FITS, BOOTSTRAP = 0.1, 10.0  # seconds that are aimed at


def estimators(reward: Any) -> dict[str, Any]:
    return {
        "NFXP": rv.NFXP(reward),
        "NPL, settled": rv.NPL(reward, updates=40),
        "NPL, 2 updates": rv.NPL(reward, updates=2),
        "CCP": rv.CCP(reward),
        "CCP, kernel": rv.CCP(reward, first_step="kernel"),
    }


def fit_rows(mdp: rv.MDP, demos: rv.Demonstrations, ours: dict[str, Any]) -> Iterator[Row]:
    for name, estimator in ours.items():
        fit = estimator.fit(mdp, demos)
        seconds = best_of(7, lambda e=estimator: e.fit(mdp, demos))
        updates = f" in {fit.updates} updates" if fit.settled is not None else ""
        yield Row(f"{name}: fit", seconds, FITS, note=f"{fit.iterations} iterations{updates}")


def fresh(fit: Any) -> Any:
    """The same fit with nothing kept: what is timed is computed."""
    return replace(fit, kept={})


def covariance_rows(fit: Any) -> Iterator[Row]:
    for joint in (False, True):
        for kind in KINDS:
            seconds = best_of(5, lambda k=kind, j=joint: fresh(fit).cov_params(k, joint=j))
            with_moves = ", joint with the increments" if joint else ""
            yield Row(f"NFXP: {kind} covariance{with_moves}", seconds)


def bootstrap_row(what: str, fit: Any, aim: float | None = None, jobs: int = 1) -> Row:
    found: list[Any] = []
    seconds = best_of(1, lambda: found.append(fresh(fit).bootstrap(reps=REPS, jobs=jobs, progress=False)))
    return Row(f"{what}: bootstrap, {REPS} replications", seconds, aim, note=str(found[0]))


def bootstrap_rows(mdp: rv.MDP, demos: rv.Demonstrations, ours: dict[str, Any]) -> Iterator[Row]:
    known = ours["NFXP"].fit(rust_bus().mdp, demos)
    yield bootstrap_row("NFXP, increments known", known, BOOTSTRAP)
    for name, estimator in ours.items():
        yield bootstrap_row(name, estimator.fit(mdp, demos), BOOTSTRAP if name == "NFXP" else None)
    yield bootstrap_row("NFXP, on two workers", ours["NFXP"].fit(mdp, demos), BOOTSTRAP, jobs=2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    arguments = parser.parse_args()
    world = rust_bus()
    demos = world.demonstrate(37, 116, seed=4)
    mdp = estimated_model(demos, bins=world.mdp.n_states, discount=world.mdp.discount)
    ours = estimators(world.reward_model())
    rows = [*fit_rows(mdp, demos, ours), *covariance_rows(ours["NFXP"].fit(mdp, demos))]
    rows += bootstrap_rows(mdp, demos, ours)
    if arguments.markdown:
        print_markdown(rows, [machine()])
    else:
        print_table(rows, [machine()], title="Rust's buses: fits, covariances, bootstraps")


if __name__ == "__main__":
    main()
