"""Are the standard errors right? Rust's bus model with known parameters, estimated over and over by every method.

    .venv/bin/python benchmarks/monte_carlo_buses.py --folder results/montecarlo --jobs 2     bias and spread
    .venv/bin/python benchmarks/monte_carlo_buses.py --coverage --folder results/montecarlo   every kind of errors
    .venv/bin/python benchmarks/monte_carlo_buses.py --replications 50                        a first look

Prints the tables of docs as Markdown. With `--folder` a run that was stopped goes on where it was. Designs: a hundred
new buses over ten years, and one of the size of Rust's group 4, with its increments known and estimated from the same
data; for `--coverage` the first of these, and a small model of which every state is visited often. `--design` and
`--kind` choose some of them.
"""

# ruff: noqa: E402 (thread counts are set before the imports that read them)

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

import revealed as rv
from revealed.environments import rust_bus
from revealed.environments.rust_bus import INCREMENTS
from revealed.montecarlo_table import MonteCarlo

FIRST_STEPS = ("frequency", "smoothed", "kernel", "logit")
KINDS = ("hessian", "opg", "robust", "cluster", "bootstrap")
SHOWN = ("cluster", "hessian")  # beside bias and spread
DRAWS = 39  # of each bootstrap: the least for 95 %, whose ends are then the smallest and the largest draw
BINS = 10  # of the model whose states are all visited


@dataclass(frozen=True)
class Design:
    """So many buses over so many months; `estimated` tells whether increments come from the same data."""

    title: str
    buses: int
    months: int
    estimated: bool = False
    bus: Callable[[], Any] = rust_bus
    promised: dict[str, str] = field(default_factory=dict)  # by method, whether theory promises 95 % at this size


LIKELIHOOD = ("NFXP", "NPL, settled")
YES, FORM = dict.fromkeys(LIKELIHOOD, "yes"), {"CCP, logit": "if its form is right"}
DESIGNS = {
    "large": Design("100 buses over 120 months", 100, 120, promised=YES | FORM),
    "group4": Design("37 buses over 116 months, as in Rust's group 4", 37, 116),
    "joint": Design("37 buses over 116 months, increments estimated as well", 37, 116, estimated=True),
    "visited": Design(
        f"500 buses over 60 months, {BINS} bins, all of them visited",
        500,
        60,
        bus=partial(rust_bus, bins=BINS, RC=4.0, theta11=0.3, cost=np.arange(float(BINS)), discount=0.95),
        promised=YES | FORM | {"CCP, frequency": "yes"},
    ),
}
TABLES = ("large", "group4", "joint")
COVERAGE = ("large", "visited")


def methods(reward: Any) -> dict[str, Any]:
    """Maximum likelihood two ways, CCP with each first step, and NPL that stops after two maximisations."""
    ours: dict[str, Any] = {"NFXP": rv.NFXP(reward), "NPL, settled": rv.NPL(reward, updates=40)}
    ours |= {f"CCP, {step}": rv.CCP(reward, first_step=step) for step in FIRST_STEPS}
    return ours | {"NPL, 2 updates": rv.NPL(reward, updates=2)}


def some_methods(reward: Any) -> dict[str, Any]:
    """Those whose every kind of errors is judged."""
    ours = methods(reward)
    return {name: ours[name] for name in (*LIKELIHOOD, "CCP, frequency", "CCP, logit")}


def landing(bins: int) -> np.ndarray:
    """(S, 2, O): where each increment leads from a bin that is kept, and from a new engine."""
    start = np.column_stack([np.arange(bins), np.zeros(bins, dtype=int)])
    return np.minimum(start[:, :, None] + np.arange(len(INCREMENTS)), bins - 1)


def estimated_model(demos: rv.Demonstrations, bins: int, discount: float) -> rv.MDP:
    """The model as an economist has it: increments from the data, the discount given."""
    return rv.MDP(rv.estimate_transitions(demos, landing(bins)), discount)


def study(
    design: Design, kind: str, replications: int, folder: str | None, jobs: int | None, chosen: Callable[[Any], Any]
) -> MonteCarlo:
    world = design.bus()
    model: Callable[..., rv.MDP] | None = None
    if design.estimated:
        model = partial(estimated_model, bins=world.mdp.n_states, discount=world.mdp.discount)
    return rv.monte_carlo(
        world,
        chosen(world.reward_model()),
        replications=replications,
        n=design.buses,
        length=design.months,
        seed=1987,
        kind=kind,
        joint=design.estimated,
        reps=DRAWS if kind == "bootstrap" else None,
        model=model,
        folder=folder,
        jobs=jobs,
    )


def replacements(design: Design) -> str:
    """How many engines a data set has to learn from."""
    world = design.bus()
    seen = [world.demonstrate(design.buses, design.months, seed=s).counts[:, 1].sum() for s in range(100)]
    low, middle, high = np.percentile(seen, (5, 50, 95))
    return f"each with about {middle:.0f} replacements ({low:.0f} to {high:.0f} in nine of ten)."


def report(found: dict[str, MonteCarlo], design: Design) -> str:
    """One table per design: the estimates are the same for every kind of errors, only the intervals differ."""
    joint = "; errors account for the estimated increments" if design.estimated else ""
    first = next(iter(found.values()))
    spread = [name for kind in found for name in (f"mean se, {kind}", f"coverage, {kind}")]
    head = ["method", "", "bias", "sd", *spread, "failed"]
    rows = [head, ["---", "---", *["---:"] * (len(head) - 2)]]
    failed = first.by_method()["failed"]
    for (method, name), row in first.table().iterrows():  # pyright: ignore[reportGeneralTypeIssues]
        kinds = [study.table().loc[(method, name)] for study in found.values()]
        errors = [cell for k in kinds for cell in (f"{k['mean_se']:.3f}", f"{k['coverage']:.3f}")]
        top = name == first.truth.index[0]
        cells = [method if top else "", name, f"{row['bias']:+.3f}", f"{row['sd']:.3f}", *errors]
        rows.append([*cells, f"{failed[method]:.0f}" if top else ""])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    size = f"{first.replications} replications, {replacements(design)} Intervals of 95 %{joint}."
    return "\n".join([f"### {design.title}", "", size, "", *lines])


def coverage(found: dict[str, MonteCarlo], design: Design) -> str:
    """The share of intervals that hold the truth, by method and kind of errors."""
    first = next(iter(found.values()))
    head = ["method", "", "promised", "bias", "sd", *found, "failed"]
    rows = [head, ["---", "---", "---", *["---:"] * (len(head) - 3)]]
    failed = {kind: study.by_method()["failed"] for kind, study in found.items()}
    for (method, name), row in first.table().iterrows():  # pyright: ignore[reportGeneralTypeIssues]
        shares = [f"{study.table().loc[(method, name)]['coverage']:.3f}" for study in found.values()]
        top = name == first.truth.index[0]
        named = [method if top else "", name, design.promised.get(method, "no") if top else ""]
        worst = max(failed[kind][method] for kind in found)
        rows.append([*named, f"{row['bias']:+.4f}", f"{row['sd']:.4f}", *shares, f"{worst:.0f}" if top else ""])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    size = f"{first.replications} replications, {replacements(design)} Intervals of 95 %."
    return "\n".join([f"### {design.title}: every kind of errors", "", size, "", *lines])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replications", type=int, default=500)
    parser.add_argument("--coverage", action="store_true", help="the coverage of every kind of errors")
    parser.add_argument("--folder", help="keep finished replications below this folder, and go on from there")
    parser.add_argument("--jobs", type=int, default=None, help="worker processes")
    parser.add_argument("--design", choices=DESIGNS, action="append", help="one of the designs (may be repeated)")
    parser.add_argument("--kind", choices=KINDS, action="append", help="one kind of errors (may be repeated)")
    arguments = parser.parse_args()
    usual, kinds, chosen, show = TABLES, SHOWN, methods, report
    if arguments.coverage:
        usual, kinds, chosen, show = COVERAGE, KINDS, some_methods, coverage
    for name in arguments.design or usual:
        found = {}
        for kind in arguments.kind or kinds:
            print(f"{name}, {kind}", file=sys.stderr)
            place = f"{name}-{kind}-coverage" if arguments.coverage else f"{name}-{kind}"
            folder = None if arguments.folder is None else os.path.join(arguments.folder, place)
            found[kind] = study(DESIGNS[name], kind, arguments.replications, folder, arguments.jobs, chosen)
        print(show(found, DESIGNS[name]), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
