"""The protocol, fixed by the paper's own sentences before any verdict is computed: what each method sees, how each
world is read, and the claims that are judged. Nothing here is tuned to a result.

Where the text leaves two readings, both are run: that of the paragraph “Method Dependencies” (in the code: section 5)
decides the first verdict of a claim, Algorithm 1 taken literally the second. What the text leaves open altogether is
varied in `specifications`. A quotation is the paper's wording without its markup; "…" stands for formulas and words
that are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

SAMPLE, OCCUPANCY = "sample", "occupancy"
SECTION_5, ALGORITHM_1 = "section 5", "Algorithm 1"  # as they are stored


@dataclass(frozen=True)
class Reading:
    """Where each method's expert weights come from: `weights` by method, with the `quote` that says so. `name` is how
    results are stored, `title` how it is shown."""

    name: str
    title: str
    about: str
    quote: str
    place: str
    weights: dict[str, str]


READINGS = {
    SECTION_5: Reading(
        SECTION_5,
        "Method Dependencies",
        "MCE-IRL takes its weights from the demonstrations (its feature counts are “estimated from expert data”, says "
        "the section on MCE-IRL). NPL and CCP take weights and π̃ from the estimated expert policy, uniform where "
        "nobody walked.",
        "the MCE-IRL gradient … depends on the expert policy estimate … only through the expected feature count "
        "estimate … On the other hand, the NPL (or CCP) gradient … depends on the expert policy estimate for "
        "estimating a state's importance relative to others (i.e., state occupancies under the estimated expert "
        "policy), and for approximating the optimal soft value.",
        "“Suitability of Methods”, Method Dependencies",
        {"MCE-IRL": SAMPLE, "NPL": OCCUPANCY, "CCP": OCCUPANCY},
    ),
    ALGORITHM_1: Reading(
        ALGORITHM_1,
        "Algorithm 1",
        "All methods take their weights from the occupancy of the estimated policy, uniform where nobody walked.",
        "Estimate expert policy … Evaluate Occ … Optimize soft value",
        "Algorithm 1",
        {"MCE-IRL": OCCUPANCY, "NPL": OCCUPANCY, "CCP": OCCUPANCY},
    ),
}


@dataclass(frozen=True)
class Choice:
    """How a sentence of the paper is read: `what` it is about, the `quote`, its `place`, and what is done here."""

    what: str
    quote: str
    place: str
    done: str


CHOICES = (
    Choice(
        "Feature counts",
        "is estimated from expert data",
        "“Maximum Causal Entropy IRL and Nested Fixed Point Algorithm”",
        'MCE-IRL: `weighting="sample"`, the visits of the walks themselves.',
    ),
    Choice(
        "Experts",
        "In Obstacleworld and MountainCar, we first compute the optimal policy in the soft value sense and sample "
        "expert trajectories using this policy.",
        "Appendix D",
        "The soft optimum under the true reward.",
    ),
    Choice(
        "The noisy expert",
        "Then, we add stochastic noise with probability 0.3 to the optimal policy.",
        "Appendix D",
        "On Objectworld: a best action, but with probability 0.3 a random one.",
    ),
    Choice(
        "Moves",
        "In Obstacleworld, the transition dynamics was deterministic. Objectworld has stochastic dynamics with a "
        "probability 0.3 of moving the agent to a random neighboring grid.",
        "Appendix D",
        "As written.",
    ),
    Choice(
        "The corridor",
        "for the top row we do not have expert policy estimates in the middle corridor (diagonal) while for the bottom "
        "row we do not have expert policy estimates for any state below the corridor (diagonal)",
        "Appendix C",
        "The corridor is the diagonal, one cell wide; “below” leaves it out.",
    ),
    Choice(
        "The goal",
        "will still lead the agent to high-reward state space regions, i.e. towards the goal",
        "Appendix C",
        "The goal absorbs: who has arrived stays and is paid. The paper does not say so; a goal that can be left is "
        "among the specifications.",
    ),
    Choice(
        "Known dynamics",
        "The scope of this work is limited to discrete settings with known transition dynamics. Accordingly, we "
        "estimate the transition dynamics from continuous expert trajectories using kernels",
        "“Correlation of Feature Counts and Expert Policy Estimates”",
        "Mountain Car: the kernel model, estimated once, is the world. The expert is solved on it, walks are drawn on "
        "it, metrics are taken on it. The real car is a variant.",
    ),
    Choice(
        "NPL's updates",
        "In Obstacleworld and MountainCar, we set K=10 while in Objectworld, we set K=5.",
        "Appendix D",
        "K = 10, 10 and 5.",
    ),
    Choice(
        "Convergence",
        "we define a common convergence criterion. Specifically, we consider convergence when the gradient norm falls "
        "below a certain threshold",
        "Appendix D",
        "One threshold for all methods; for networks, met five times in a row.",
    ),
    Choice(
        "Seeds",
        "3 seeds for Obstacleworld and MountainCar while we use 5 seeds for Objectworld",
        "Appendix D",
        "At least as many for a verdict.",
    ),
)

# Thresholds of the rules, the same for all claims
WELL = 0.10  # of what knowing nothing costs: less is "well"; a larger gap between two methods is a difference
ALIKE = 0.10  # of the level with the least data: a smaller difference is none,
NIL = 0.01  # nor is a smaller share of what knowing nothing costs
NEGLIGIBLE = 0.05  # a smaller advantage or improvement is none
SIMILAR = 0.9  # correlation between recovered rewards
FAR = 0.8  # an EPIC below so much of the others' is far below
MOVED = 0.01  # a larger mean change of π̃ is one
CALM = 0.9  # share of seeds in which π̃ has come to rest
FEW = 5  # trajectories or less are few, where there are so few


@dataclass(frozen=True)
class Sentence:
    """A claim: the paper's words and where they stand, in short, and the rule that decides."""

    key: str
    experiment: str
    claim: str
    quote: str
    place: str
    rule: str


_NOTHING = (
    "Shares of what knowing nothing costs: the uniform policy's loss and NLL above the expert's own, and the EPIC "
    "distance of an unrelated reward (0.71)."
)
_AHEAD = (
    f"Differences from MCE-IRL, paired by seed. Holds if all intervals lie above 0 and all means are at least "
    f"{NEGLIGIBLE:.0%} of MCE-IRL's own value (or {NIL:.0%} of what knowing nothing costs, where that is more); does "
    "not hold if one interval lies below that bound."
)
_ALIKE = (
    "Differences from MCE-IRL, averaged over the sizes in brackets: holds if all intervals lie within "
    f"± {ALIKE:.0%} of the methods' mean level with the least data (or ± {NIL:.0%} of what knowing nothing costs, "
    "where that is more); does not hold if one lies outside."
)
_IMPROVES = (
    f"Fall from the least to the most data: holds if all intervals lie above 0 and all means are at least "
    f"{NEGLIGIBLE:.0%} of the methods' mean level with the least data (or {NIL:.0%} of what knowing nothing costs, "
    "where that is more); does not hold if one interval lies below that bound. A metric that is below that with the "
    "least data has nothing to gain, and is left out."
)
_DOES_WELL = f"{_NOTHING} Holds if all intervals lie below {WELL:.0%}; does not hold if one lies above."
_DOES_POORLY = f"{_NOTHING} Holds if all intervals lie above {WELL:.0%}; does not hold if one lies below."

SENTENCES = (
    Sentence(
        "few-mce-well",
        "obstacleworld",
        "With few trajectories MCE-IRL does well on all metrics.",
        "in low data-regimes (i.e. with few trajectories) MCE-IRL performs well on all metrics",
        "Figure 1, “Well-Estimated Feature Counts”",
        _DOES_WELL,
    ),
    Sentence(
        "few-others-poor",
        "obstacleworld",
        "With few trajectories CCP and NPL do worse than MCE-IRL in NLL, stochastic EVD and EPIC.",
        "However, with low expert data, CCP and NPL perform poorly (i.e., high NLL, Stochastic EVD, EPIC).",
        "Figure 1, “Well-Estimated Feature Counts”",
        _AHEAD,
    ),
    Sentence(
        "more-data-converge",
        "obstacleworld",
        "With more data CCP and NPL reach MCE-IRL's performance.",
        "With more expert data, CCP method and NPL converge to similar performance as MCE-IRL.",
        "Figure 1, “Well-Estimated Feature Counts”",
        _ALIKE,
    ),
    Sentence(
        "car-few-poor",
        "mountaincar",
        "On Mountain Car all methods do poorly on all metrics with little data.",
        "in low-data regimes all methods perform poorly with high values for all metrics",
        "Figure 2, “Correlation of Feature Counts and Expert Policy Estimates”",
        _DOES_POORLY,
    ),
    Sentence(
        "car-improves",
        "mountaincar",
        "On Mountain Car every method improves with data.",
        "As the amount of expert data increases, the performance of each method improves.",
        "Figure 2, “Correlation of Feature Counts and Expert Policy Estimates”",
        _IMPROVES,
    ),
    Sentence(
        "car-alike",
        "mountaincar",
        "On Mountain Car all methods are alike from about 400 trajectories on.",
        "around the same number of trajectories (≈ 400) all methods perform equally well, with a similar range of "
        "values across all metrics",
        "Figure 2, “Correlation of Feature Counts and Expert Policy Estimates”",
        f"{_ALIKE} Each size from 400 on is judged by itself; how well the methods do is not part of it.",
    ),
    Sentence(
        "objects-few-poor",
        "objectworld",
        "On Objectworld all methods do poorly on all metrics with little data.",
        "in low-data regimes, all methods perform poorly with high values for all metrics",
        "Figure 3, “Deep Reward Representations”",
        _DOES_POORLY,
    ),
    Sentence(
        "objects-improve",
        "objectworld",
        "On Objectworld all methods improve with data and come to similar values.",
        "With more expert data, the performance for all methods improve and converge to similar values.",
        "Figure 3, “Deep Reward Representations”",
        f"{_IMPROVES} And with the most data: {_ALIKE[:1].lower()}{_ALIKE[1:]}",
    ),
    Sentence(
        "objects-no-difference",
        "objectworld",
        "On Objectworld the two families do not differ, with little data or with much.",
        "we observe no difference in the performance of optimization- and approximation-based methods in both low and "
        "high data regimes",
        "Figure 3, “Deep Reward Representations”",
        _ALIKE,
    ),
    Sentence(
        "epic-low-for-ccp",
        "objectworld",
        "On Objectworld CCP's EPIC is far below the others', at similar EVD and stochastic EVD.",
        "EPIC for the CCP-method is much lower than for other methods … both EVD and stochastic-EVD are similar for "
        "all methods",
        "Figure 3, Appendix D",
        f"CCP's metric over the mean of the others', averaged over all sizes. Holds if the interval lies below {FAR} "
        "for EPIC and within 0.8 … 1.2 for EVD and stochastic EVD; does not hold if one lies outside.",
    ),
    Sentence(
        "epic-improves",
        "",
        "EPIC improves with data, in all three worlds.",
        "For all environments we see that the EPIC metric shows improving performance with more data.",
        "Figures 1 to 3, Appendix D",
        _IMPROVES,
    ),
    Sentence(
        "similar-rewards",
        "",
        "With much data all methods recover similar rewards, in all three worlds.",
        "Qualitatively, all methods also recover similar rewards in high data regimes",
        "Figures 4, 6 and 7, “Discussion”",
        f"Least correlation between two methods' rewards over the states. Holds if all intervals lie above {SIMILAR}; "
        "does not hold if one lies below.",
    ),
    Sentence(
        "partial-mce-well",
        "partial-expert",
        "With a partial expert policy MCE-IRL does well in both cases.",
        "In both cases, MCE-IRL performs well, as the feature counts (i.e., path counts) are well-estimated.",
        "Figure 5, Appendix C",
        f"EVD, and stochastic EVD above the expert's own, as shares of the uniform policy's loss: holds if all "
        f"intervals lie below {WELL:.0%}; does not hold if one lies above.",
    ),
    Sentence(
        "partial-npl-corridor",
        "partial-expert",
        "Without the corridor NPL recovers the reward and does as well as MCE-IRL.",
        "when the environment only lacks the expert policy estimates along the corridor (top row), the NPL method is "
        "able to recover the true reward and performs as well as MCE-IRL",
        "Figure 5, Appendix C",
        f"Holds if NPL's EVD lies below {WELL:.0%} of the uniform policy's loss, and its stochastic EVD exceeds "
        f"MCE-IRL's by less than that; does not hold if one interval lies above.",
    ),
    Sentence(
        "partial-npl-triangle",
        "partial-expert",
        "Without the lower triangle NPL does poorly, compared to MCE-IRL.",
        "Given this complete lack of expert policy estimates for an important set of states the NPL method performs "
        "poorly as compared to MCE-IRL.",
        "Figure 5, Appendix C",
        f"Stochastic EVD, paired by seed: holds if NPL's exceeds MCE-IRL's by more than {WELL:.0%} of the uniform "
        "policy's loss; does not hold if the interval lies below that.",
    ),
    Sentence(
        "partial-npl-reward",
        "partial-expert",
        "Without the lower triangle NPL does not recover the reward at all.",
        "when we lack the expert policy estimates for the bottom half of the grid, the NPL method performs poorly and "
        "is not able to recover the reward at all",
        "Figure 5, Appendix C",
        f"NPL's EVD, the metric of the reward in that figure: holds if it lies above {WELL:.0%} of the uniform "
        "policy's loss; does not hold if below.",
    ),
    Sentence(
        "settled-after-three",
        "updates",
        "π̃ does not change after K = 3.",
        "Empirically, we observe that π̃ does not change after K=3.",
        "Appendix D",
        f"Total variation between successive π̃, averaged over the states that the demonstrations visit, in updates 4 "
        f"and later: holds if at most {MOVED} in at least {CALM:.0%} of the seeds of every world; does not hold if in "
        "at most half of those of one.",
    ),
    Sentence(
        "faster",
        "timing",
        "NPL and CCP are faster than MCE-IRL at every setting.",
        "approximation-based methods always outperform optimization-based methods in terms of computational efficiency",
        "Table 2, “Discussion”",
        "",
    ),
    Sentence(
        "steps-cheaper",
        "timing",
        "A step of CCP or NPL takes much less time than one of MCE-IRL.",
        "Moreover, the inner loop computation takes much lesser time because there are no DP steps in it",
        "Tables 5 and 6, Appendix B",
        "",
    ),
    Sentence(
        "speed-up-grows",
        "timing",
        "The speed-up of NPL and CCP grows with the size of the grid.",
        "Numbers in brackets correspond to the speed up against MCE-IRL.",
        "Table 2, As its numbers read (no sentence says so): ×8 and ×13 at 16², ×31 and ×103 at 64²",
        "",
    ),
)


@dataclass(frozen=True)
class Required:
    """What a claim about an experiment speaks of: a run without it cannot decide."""

    settings: tuple[str, ...]
    trajectories: tuple[int, ...]
    seeds: int


REQUIRED = {
    "obstacleworld": Required(("Obstacleworld 16²",), (1, 50), 3),
    "mountaincar": Required(("Mountain Car 100²",), (100, 400, 1000), 3),
    "objectworld": Required(("Objectworld 32², C4",), (1, 200), 5),
    "partial-expert": Required(("Obstacleworld 16²",), (), 3),
    "objectworld maps": Required(("Objectworld 16², C4",), (200,), 5),  # Figure 4
    "updates": Required(("Obstacleworld 16²", "Mountain Car 100²", "Objectworld 16², C4"), (), 5),
}
