"""Verdicts of every kind, made by hand: for the report, the terminal and the README."""

from revealed.experiments.rules import FAILS, HOLDS, UNDECIDED, UNTESTED, Outcome, Share, Verdict

EVIL = "<script>alert('1')</script> & π̃"
SAYS = "The performance of MCE-IRL is better than CCP’s when the number of trajectories is small."
VERDICTS = [
    Verdict(
        "less-data", "obstacleworld", "MCE-IRL needs less data.", SAYS, "Figure 1, “Counts”", "Holds if below 0.",
        Outcome(HOLDS, "0.1 ± 0.01", {"NLL": HOLDS, "EPIC": FAILS}), Outcome(FAILS, "−0.2 ± 0.01"),
        Share(212, 60, 28, "Weights of the states."),
    ),
    Verdict(
        "evil", "obstacleworld", EVIL, EVIL, "Figure 1", "Holds if > 0.",
        Outcome(FAILS, "5 < 6 & 7", reason="Because of “this”."), share=Share(0, 0, 0),
    ),
    Verdict("later", "obstacleworld", "All perform alike.", "Alike.", "Figure 1", "", Outcome(UNTESTED, "one seed")),
    Verdict("faster", "timing", "NPL is faster.", "Faster.", "Table 2", "Above 1.", Outcome(UNDECIDED, "no cells")),
]  # fmt: skip
