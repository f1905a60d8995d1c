"""Why a claim of the paper may not come out here: the likely reason, shown where it does not hold.

Reasons are found by the experiment and the beginning of the claim.
"""

from __future__ import annotations

_SAME = (
    "With the same weights a settled NPL is a stationary point of MCE-IRL's own objective (theory E3), and here it "
    "settles there, or nearly. Where the paper saw a difference, its NPL may not have settled."
)
_UNIFORM = (
    "Occupancy weights take π̂_E to be uniform in unvisited cells, so with few walks the expert's feature counts "
    "themselves lean towards those of a random walk, and MCE-IRL matches them faithfully. Sample weights count what "
    "was seen; see the rows that are judged with them."
)
_FREQUENCIES = (
    "CCP plans with π̂_E, whose frequencies are noisy in cells that were seen once or twice. Perhaps the paper's π̂_E "
    "was smoothed, or its walks covered its map better than ours do."
)
_NETWORK = (
    "In most runs network training stops at the iteration limit, not at a maximum (see “ended” in the table), and NPL "
    "runs K searches: differences may be due to training."
)
_KERNEL = (
    "The methods plan with transitions estimated from the expert's own drives, which contain no data on many pairs of "
    "state and action, and are judged on the exact model. A reward that explains the expert in one model need not "
    "explain it in the other: the variant with exact transitions has an EVD more than ten times lower (but no better "
    "NLL or stochastic EVD)."
)
_PARTIAL = (
    "Where the policy is unknown it is taken to be uniform, so the weights are those of a partly random walk: they "
    "make the goal look less attractive. The order of the three weights survives, which is all that EVD needs; the "
    "policy that goes with them (stochastic EVD) is not the expert's."
)
_GOAL = (
    "What matters is the goal cell itself: it lies in the corridor, and an agent that has not learnt to stay there "
    "leaves again; above the diagonal it is known. With that cell known (third case) the two are about alike."
)
_SETTLED = (
    "The largest change over all states is a strict measure: the average over the expert's visits is many times "
    "smaller (see the table), and the metrics hardly move."
)
_STEPS = (
    "What a method saves per step is lost again if it takes more steps: NPL runs K searches, and those that miss the "
    "threshold use every iteration allowed."
)
_COST = (
    "A step of MCE-IRL costs a few sparse factorisations here, from the last soft optimum on, where the paper's has a "
    "dense value iteration and an inverse that grow with the cube of the states. And the threshold is met after fewer "
    "iterations on larger grids, where fixed costs weigh more."
)

REASONS: dict[tuple[str, str], str] = {
    ("obstacleworld", "With few trajectories MCE-IRL has a lower NLL than NPL"): _SAME,
    ("obstacleworld", "With few trajectories MCE-IRL has a lower stochastic EVD than NPL"): _SAME,
    ("obstacleworld", "With few trajectories MCE-IRL has a lower EPIC than NPL"): _SAME,
    ("obstacleworld", "With few trajectories MCE-IRL has a lower NLL than CCP."): _UNIFORM,
    ("obstacleworld", "With few trajectories MCE-IRL has a lower stochastic EVD than CCP."): _UNIFORM,
    ("obstacleworld", "With few trajectories MCE-IRL has a lower EPIC than CCP."): _UNIFORM,
    ("obstacleworld", "With more data"): _FREQUENCIES,
    ("mountaincar", "With little data"): _KERNEL,
    ("mountaincar", "EPIC"): _KERNEL,
    ("mountaincar", "From about 400"): _KERNEL,
    ("objectworld", "No difference"): _NETWORK,
    ("objectworld", "CCP's EPIC"): (
        "EPIC and STARC agree here, and neither sets CCP apart by much; nor is its EVD equal. The paper's gap may come "
        "from where its searches stopped: EPIC goes on changing while EVD hardly does (see the updates)."
    ),
    ("objectworld", "With the most data"): _NETWORK,
    ("partial-expert", "MCE-IRL does well in both cases (reading a)"): _PARTIAL,
    ("partial-expert", "NPL does well in the corridor"): _PARTIAL,
    ("partial-expert", "NPL does poorly in the triangle case, unlike MCE-IRL (reading a)"): _SAME,
    ("partial-expert", "NPL does worse in the triangle"): _GOAL,
    ("updates", "π̃"): _SETTLED,
    ("updates", "π̃ does not change after K = 3 (Objectworld"): (
        "A network's searches do not end at a maximum, so π̃ keeps changing as training continues."
    ),
    ("timing", "NPL and CCP"): _STEPS,
    ("timing", "The speed-up"): _COST,
}
UNEXPECTED = "No reason is known: the runs for which these reasons were written had a different result."


def likely_reason(experiment: str, claim: str) -> str:
    """The reason whose beginning fits the claim best."""
    fitting = [begin for name, begin in REASONS if name == experiment and claim.startswith(begin)]
    return REASONS[experiment, max(fitting, key=len)] if fitting else UNEXPECTED
