"""The protocol is the paper's: its quotations stand there word for word, every claim is judged, every number required
is a number of the paper."""

import re
from pathlib import Path

import pytest

from revealed.experiments import catalogue, mountaincar, objectworld, obstacleworld, partial_expert
from revealed.experiments.cells import METHODS
from revealed.experiments.claims import CLAIMS
from revealed.experiments.curves import FITS
from revealed.experiments.protocol import (
    ALGORITHM_1,
    CHOICES,
    OCCUPANCY,
    READINGS,
    REQUIRED,
    SAMPLE,
    SECTION_5,
    SENTENCES,
)
from revealed.experiments.verdicts import TIME_RULES, settings_of

PAPER = Path(__file__).parents[2] / "shared" / "paper"
QUOTED = {f"reading {one.name}": one.quote for one in READINGS.values()}
QUOTED |= {one.what: one.quote for one in CHOICES} | {one.key: one.quote for one in SENTENCES}


@pytest.fixture(scope="module")
def text():
    """The paper without its markup."""
    files = sorted(PAPER.glob("*.txt"))
    if not files:
        pytest.skip("the paper's text is not beside this checkout (../shared/paper)")
    plain = re.sub(r"\\(?:emph|textbf|textit)\{([^{}]*)\}", r"\1", files[0].read_text(encoding="utf-8"))
    plain = re.sub(r"\{\\bf ([^{}]*)\}", r"\1", plain)
    plain = re.sub(r"\\[;,!]|~", " ", plain)
    for formula, sign in {"$\\approx 400$": "≈ 400", r"$\tilde{\pi}$": "π̃"}.items():
        plain = plain.replace(formula, sign)
    plain = re.sub(r"\$(K=\d+)\$", r"\1", plain)
    return " ".join(plain.split())


@pytest.mark.parametrize("what", QUOTED)
def test_a_quotation_stands_in_the_paper(what, text):
    """Its pieces in their order, none far from the one before."""
    place = text.find(QUOTED[what].split(" … ")[0])
    assert place >= 0
    for piece in QUOTED[what].split(" … "):
        found = text.find(piece, place)
        assert 0 <= found - place < 1500, piece
        place = found + len(piece)


NAMED = [(one.quote, title) for one in (*CHOICES, *SENTENCES) for title in re.findall("“([^”]+)”", one.place)]
NAMED += [(one.quote, {"B": "app:B", "C": "app:C", "D": "app:D"}[letter]) for one in (*CHOICES, *SENTENCES)
          for letter in re.findall(r"Appendix (\w)$", one.place)]  # fmt: skip


@pytest.mark.parametrize(("quote", "title"), NAMED)
def test_a_quotation_stands_in_the_section_that_its_place_names(quote, title, text):
    heads = [found.start() for found in re.finditer(r"\\(?:sub)?section\{", text)]
    if title.startswith("app:"):
        heads = [found.start() for found in re.finditer(r"\\section\{", text)]
        begin = max(head for head in heads if head < text.index("\\label{" + title + "}"))
    else:
        begin = next(head for head in heads if title in text[head : head + 200])
    end = min((head for head in heads if head > begin), default=len(text))
    assert quote.split(" … ")[0] in text[begin:end]


def test_a_quotation_that_the_paper_does_not_have_is_noticed(text):
    assert "MCE-IRL performs poorly on all metrics" not in text


def test_the_numbers_that_are_required_are_the_papers(text):
    assert "$\\in \\{1, 3, 5, 10, 20, 30, 50\\}$" in text
    assert "$\\in \\{100, 200, 400, 500, 700, 1000\\}$" in text
    assert "$\\in \\{1, 3, 5, 10, 20, 30, 50, 100, 150, 200\\}$" in text
    assert obstacleworld.Config().trajectories == (1, 3, 5, 10, 20, 30, 50)
    assert mountaincar.Config().trajectories == (100, 200, 400, 500, 700, 1000)
    assert objectworld.Config().trajectories == (1, 3, 5, 10, 20, 30, 50, 100, 150, 200)
    assert "we set K=10 while in Objectworld, we set K=5" in text
    assert (obstacleworld.Config().updates, mountaincar.Config().updates, objectworld.Config().updates) == (10, 10, 5)
    assert partial_expert.Config().updates == 10


def test_every_sentence_is_judged_by_a_rule_and_every_claim_has_its_sentence():
    keys = [sentence.key for sentence in SENTENCES]
    assert len(keys) == len(set(keys))
    assert set(keys) == set(CLAIMS)
    assert all(sentence.rule or TIME_RULES[sentence.key] for sentence in SENTENCES)
    assert all(set(claim.experiments) <= set(catalogue.EXPERIMENTS) for claim in CLAIMS.values())


def test_the_full_protocol_has_what_claims_require():
    plan = catalogue.plan_for("paper")
    for name, required in REQUIRED.items():
        config = plan[name.partition(" ")[0]]
        assert set(required.settings) <= set(settings_of(name, config))
        assert config.seeds >= required.seeds
        sizes = config.trajectories if required.trajectories else ()
        assert set(required.trajectories) <= set(sizes)


def test_the_readings_differ_in_what_mce_irl_sees_alone():
    section5, literal = READINGS[SECTION_5].weights, READINGS[ALGORITHM_1].weights
    assert set(section5) == set(literal) == set(METHODS)
    assert (section5["MCE-IRL"], literal["MCE-IRL"]) == (SAMPLE, OCCUPANCY)
    assert {section5[m] for m in ("NPL", "CCP")} == {literal[m] for m in ("NPL", "CCP")} == {OCCUPANCY}
    assert len(FITS) == 4  # what both share is fitted once
