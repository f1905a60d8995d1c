"""Rust (1987), Table IX: the published estimates beside ours, every method beside maximum likelihood, and the tests.

Linear costs and 90 mileage bins; the log likelihood is that of decisions and increments together, and standard errors
are the outer product of its gradients, as published. The hypotheses are that Zurcher is myopic (a discount of 0 instead
of 0.9999), and that all groups share their parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.datasets.rust_bus import BusData, rust_bus
from revealed.estimators import CCP, NFXP, NPL
from revealed.fit import Fit

if TYPE_CHECKING:
    import pandas as pd

Groups = tuple[int, ...]
SAMPLES: tuple[Groups, ...] = ((1, 2, 3), (4,), (1, 2, 3, 4))
FORWARD, MYOPIC = 0.9999, 0.0
PARAMETERS = ("RC", "theta11", "theta30", "theta31")
LIKELIHOOD = "log likelihood"
TOLERANCE = 1.5e-4  # of printed parameters
LOOSER = 1.5e-3  # of printed likelihoods and standard errors
MOST_UPDATES = 40  # of NPL, which needs about six here


NOT_GIVEN = float("nan")


@dataclass(frozen=True)
class Published:
    """A column of Table IX as far as we have it; estimates and standard errors in the order of `PARAMETERS`."""

    estimates: tuple[float, ...] = (NOT_GIVEN,) * 4
    errors: tuple[float, ...] = (NOT_GIVEN,) * 4
    llf: float = NOT_GIVEN


def _errors(RC: float, theta11: float) -> tuple[float, ...]:
    return RC, theta11, NOT_GIVEN, NOT_GIVEN


PUBLISHED: dict[tuple[Groups, float], Published] = {
    ((1, 2, 3), FORWARD): Published((11.7270, 4.8259, 0.3010, 0.6884), _errors(2.602, 1.792), -2708.366),
    ((4,), FORWARD): Published((10.0750, 2.2930, 0.3919, 0.5953), _errors(1.582, 0.639), -3304.155),
    ((1, 2, 3, 4), FORWARD): Published((9.7558, 2.6275, 0.3489, 0.6394), _errors(1.227, 0.618), -6055.250),
    ((1, 2, 3), MYOPIC): Published(),
    ((4,), MYOPIC): Published((7.6358, 71.5133, NOT_GIVEN, NOT_GIVEN), _errors(0.7197, 13.778), -3306.028),
    ((1, 2, 3, 4), MYOPIC): Published(),
}


@dataclass(frozen=True, eq=False)
class Replication:
    """What came out, as tables of numbers: `estimates` beside the published ones, `methods`, `tests`, and `notes`."""

    estimates: pd.DataFrame
    methods: pd.DataFrame
    tests: pd.DataFrame
    notes: tuple[str, ...]
    source: str


def run() -> Replication:
    """Estimate everything: about forty fits, each well below a second."""
    import pandas as pd

    buses = {(groups, beta): rust_bus(list(groups), discount=beta) for groups, beta in PUBLISHED}
    fits = {key: NFXP(bus.reward, progress=False).fit(bus.mdp, bus.demonstrations) for key, bus in buses.items()}
    rows = {key: list(_beside(key, fits[key], buses[key])) for key in PUBLISHED}
    methods = [row for groups in SAMPLES for row in _methods(groups, buses[groups, FORWARD], fits[groups, FORWARD])]
    return Replication(
        estimates=pd.DataFrame([row for key in PUBLISHED for row in rows[key]]),
        methods=pd.DataFrame(methods),
        tests=pd.DataFrame(_tests(fits)),
        notes=tuple(note for key in PUBLISHED for note in _differences(key, rows[key])),
        source=buses[(4,), FORWARD].source,
    )


def name_groups(groups: Iterable[int]) -> str:
    listed = list(groups)
    return ("group " if len(listed) == 1 else "groups ") + ", ".join(map(str, listed))


def _beside(key: tuple[Groups, float], fit: Fit, bus: BusData) -> Iterator[dict[str, Any]]:
    """A row per quantity: ours, the published one, and whether they agree to the printed digits."""
    groups, beta = key
    published = PUBLISHED[key]
    assert bus.mdp.estimated is not None
    ours = np.concatenate([fit.theta, bus.mdp.estimated.psi])
    errors = np.sqrt(np.diag(fit.cov_params("opg", joint=True)))
    head = {"groups": name_groups(groups), "discount": beta}
    for name, *values in zip(PARAMETERS, ours, published.estimates, errors, published.errors, strict=True):
        yield _row(head | {"quantity": name}, *map(float, values))
    yield _row(head | {"quantity": LIKELIHOOD}, fit.llf + bus.transition_llf, published.llf)


def _row(
    head: dict[str, Any], ours: float, published: float, error: float = np.nan, published_error: float = np.nan
) -> dict[str, Any]:
    tolerance = LOOSER if head["quantity"] == LIKELIHOOD else TOLERANCE
    return head | {
        "ours": ours,
        "published": published,
        "agrees": _agree(ours, published, tolerance),
        "standard error": error,
        "published error": published_error,
        "error agrees": _agree(error, published_error, LOOSER),
    }


def _agree(ours: float, published: float, tolerance: float) -> bool | None:
    """None where there is nothing to compare with."""
    return None if np.isnan(published) else bool(abs(ours - published) <= tolerance)


def _differences(key: tuple[Groups, float], rows: list[dict[str, Any]]) -> Iterator[str]:
    """What differs, in words."""
    where = f"For {name_groups(key[0])} at discount {key[1]:g}"
    for row in rows:
        if row["agrees"] is False:
            yield f"{where} the published {row['quantity']} is {row['published']:.4f}, ours is {row['ours']:.4f}."
        if row["error agrees"] is False:
            errors = f"{row['published error']:.4f}, ours is {row['standard error']:.4f}"
            yield f"{where} the published standard error of {row['quantity']} is {errors}."


def log_likelihood_at(bus: BusData, theta: Any) -> float:
    """Σ n(s,a) log π_θ(a|s) of the full solution at θ."""
    from revealed.bellman import solve

    solution = solve(bus.mdp, bus.reward.value(np.asarray(theta, dtype=np.float64)))
    return float(np.sum(bus.demonstrations.counts * solution.log_policy))


def _methods(groups: Groups, bus: BusData, mle: Fit) -> Iterator[dict[str, Any]]:
    """NFXP, CCP after two first steps, and NPL with one more update at a time until it is the MLE."""
    head = {"groups": name_groups(groups)}
    yield head | _as_row("NFXP", mle, bus, mle)
    for first_step in ("frequency", "smoothed"):
        ccp = CCP(bus.reward, first_step=first_step, progress=False).fit(bus.mdp, bus.demonstrations)
        yield head | _as_row(f"CCP, {first_step}", ccp, bus, mle)
    for updates in range(1, MOST_UPDATES + 1):
        npl = NPL(bus.reward, updates=updates, progress=False).fit(bus.mdp, bus.demonstrations)
        yield head | _as_row(f"NPL, K = {updates}", npl, bus, mle)
        if np.abs(npl.theta - mle.theta).max() <= TOLERANCE:
            return


def _as_row(name: str, fit: Fit, bus: BusData, mle: Fit) -> dict[str, Any]:
    """The likelihood is that of the model solved at the estimate: what CCP and NPL maximise is another."""
    RC, theta11 = (float(x) for x in fit.theta)
    return {
        "method": name,
        "RC": RC,
        "theta11": theta11,
        LIKELIHOOD: log_likelihood_at(bus, fit.theta) + bus.transition_llf,
        "from NFXP": float(np.abs(fit.theta - mle.theta).max()),
        "seconds": fit.seconds,
    }


def _tests(fits: dict[tuple[Groups, float], Fit]) -> Iterator[dict[str, Any]]:
    """Likelihood ratios: of myopia in each sample, and of groups 1–3 and 4 alike, increments included."""
    from revealed.hypotheses import likelihood_ratio_test

    for groups in SAMPLES:
        test = likelihood_ratio_test(fits[groups, MYOPIC], fits[groups, FORWARD], df=1)
        gain = PUBLISHED[groups, FORWARD].llf - PUBLISHED[groups, MYOPIC].llf
        yield {"hypothesis": "myopic", "sample": name_groups(groups)} | _tested(test, gain)
    for beta in (FORWARD, MYOPIC):
        apart = [fits[groups, beta] for groups in SAMPLES[:2]]
        test = likelihood_ratio_test(fits[SAMPLES[2], beta], apart, joint=True)
        gain = sum(PUBLISHED[groups, beta].llf for groups in SAMPLES[:2]) - PUBLISHED[SAMPLES[2], beta].llf
        yield {"hypothesis": "groups 1–3 and 4 alike", "sample": f"discount {beta:g}"} | _tested(test, gain)


def _tested(test: Any, published_gain: float) -> dict[str, Any]:
    return {
        "statistic": test.statistic,
        "published": 2.0 * published_gain,
        "df": test.df,
        "p-value": test.pvalue,
    }
