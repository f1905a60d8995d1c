"""(placeholder until the timing lane is merged)"""

from revealed.experiments.rules import UNDECIDED, Outcome

RULES = {"faster": "", "speed-up-grows": ""}


def faster_everywhere(results):
    return Outcome(UNDECIDED, "")


def grows_with_size(results):
    return Outcome(UNDECIDED, "")
