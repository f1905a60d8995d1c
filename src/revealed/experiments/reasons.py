"""Why a claim of the paper may not come out here: the likely reason, told where the verdict is not "holds".

Reasons are found by the experiment and the beginning of the claim.
"""

from __future__ import annotations

_SAME = (
    "With the same weights a settled NPL is a stationary point of MCE-IRL's own objective (theory E3), and it settles "
    "there, or nearly: no difference can come out. Where the paper saw one, its NPL may not have settled."
)
_UNIFORM = (
    "Occupancy weights take π̂_E to be uniform where nobody walked, so with few walks the expert's feature counts "
    "themselves lean towards those of a random walk, and MCE-IRL matches them faithfully; with sample weights, which "
    "count what was seen, compare the rows below."
)
_NETWORK = (
    "A network's searches end where the gradient's rule or the most iterations say, not at a maximum: NPL has K "
    "searches, and so more steps. Differences of this size are those of training."
)
_KERNEL = (
    "Metrics are taken on the exact model, but the methods plan with kernel transitions, most of whose pairs no drive "
    "came near. What is recovered there is right for the kernel model only; with the exact transitions (the variant "
    "beside) EVD is an order of magnitude lower."
)
_PARTIAL = (
    "The weights from the partial policy are themselves wrong where it is uniform: the occupancy of a walk that "
    "stumbles through the unknown cells. All three weights can be off in size and still have the right order, which is "
    "all that EVD asks for; the policy that goes with them (stochastic EVD) is not the expert's."
)
_SETTLED = (
    "It moves less with every update, but the largest change over all states is a strict measure: the average over the "
    "expert's visits is many times smaller (see the table), and the metrics hardly move."
)
_COST = (
    "Here a gradient step of MCE-IRL is not much dearer than one of NPL or CCP: the soft optimum starts from the last "
    "one and takes two or three sparse factorisations instead of a dense value iteration, so what the others save per "
    "step is small on small grids, and NPL's K searches may take more steps than they save."
)

REASONS: dict[tuple[str, str], str] = {
    ("obstacleworld", "With few trajectories MCE-IRL has a lower NLL than NPL"): _SAME,
    ("obstacleworld", "With few trajectories MCE-IRL has a lower stochastic EVD than NPL"): _SAME,
    ("obstacleworld", "With few trajectories MCE-IRL has a lower EPIC than NPL"): _SAME,
    ("obstacleworld", "With few trajectories MCE-IRL has a lower"): _UNIFORM,
    ("obstacleworld", "With more data"): (
        "CCP's π̂_E from some 1,500 decisions is still noisy in cells that were seen once or twice: it goes on "
        "improving beyond the paper's 50 walks."
    ),
    ("mountaincar", "With little data"): _KERNEL,
    ("mountaincar", "EPIC"): _KERNEL,
    ("mountaincar", "From about 400"): _KERNEL,
    ("objectworld", "No difference"): _NETWORK,
    ("objectworld", "CCP's EPIC"): (
        "EPIC and STARC agree here, and neither sets CCP apart by much. The paper's gap may come from where its "
        "searches stopped: EPIC of a network drifts upwards in long searches while EVD stays."
    ),
    ("objectworld", "With the most data"): _NETWORK + " Choices do not tell such rewards apart (EVD is alike).",
    ("partial-expert", "MCE-IRL does well in both cases (reading a)"): _PARTIAL,
    ("partial-expert", "NPL does well in the corridor"): _PARTIAL,
    ("partial-expert", "NPL does poorly in the triangle case, unlike MCE-IRL (reading a)"): _SAME,
    ("updates", "π̃"): _SETTLED,
    ("updates", "π̃ does not change after K = 3 (Objectworld"): (
        "A network's searches do not end at a maximum: π̃ goes on moving by what training moves it, on average over the "
        "expert's visits much less than at most (see the table)."
    ),
    ("timing", "NPL and CCP"): _COST,
    ("timing", "The speed-up"): _COST,
}


def likely_reason(experiment: str, claim: str) -> str:
    """The reason whose beginning fits the claim best; empty where none does."""
    fitting = [begin for name, begin in REASONS if name == experiment and claim.startswith(begin)]
    return REASONS[experiment, max(fitting, key=len)] if fitting else ""
