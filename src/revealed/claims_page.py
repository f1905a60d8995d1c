"""Verdicts on a page: all claims in one table, and each with the paper's sentence, its statistics and its rule."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from revealed.claim_words import (
    COUNTED,
    READINGS,
    SAME,
    SHORT,
    count_verdicts,
    outcome,
    percent,
    share_in_words,
    shown_where,
)
from revealed.experiments import protocol
from revealed.experiments.rules import FAILS, HOLDS, UNDECIDED, UNTESTED, Outcome, Share, Verdict
from revealed.page import Html, join, paragraph, table, tag

if TYPE_CHECKING:
    from collections.abc import Sequence

MARKS = {HOLDS: ("holds", "✓"), FAILS: ("fails", "✗"), UNDECIDED: ("open", "?"), UNTESTED: ("untested", "–")}
HEADER = ("Claim", *READINGS.values(), "Holds in", "What flips it")


def anchors(verdicts: Sequence[Verdict]) -> dict[int, str]:
    """A name on the page for each verdict, by its place in the list; a key that comes twice gets a number."""
    given: dict[int, str] = {}
    for k, verdict in enumerate(verdicts):
        name = "claim-" + re.sub(r"[^\w-]+", "-", verdict.key)
        given[k] = name if name not in given.values() else f"{name}-{k}"
    return given


def badge(verdict: str, words: str = "") -> Html:
    """The verdict in words, with a sign and a colour."""
    kind, mark = MARKS.get(verdict, ("open", "?"))
    said = words or SHORT.get(verdict, verdict)
    return tag("span", tag("span", mark, aria_hidden="true"), f" {said}", class_=f"badge {kind}")


def counts(verdicts: list[Verdict]) -> Html:
    """For each reading, how many claims hold, do not hold, are undecided and were not tested."""
    cards = [tag("li", tag("h3", name), _counted(verdicts, reading)) for reading, name in READINGS.items()]
    return tag("ul", join(cards), class_="readings", aria_label="Verdicts by reading")


def _counted(verdicts: list[Verdict], reading: str) -> Html:
    found = count_verdicts(verdicts, reading)
    items = [tag("li", tag("strong", str(n)), badge(verdict, COUNTED[verdict])) for verdict, n in found.items()]
    return tag("ul", join(items), class_="counts")


def summary(verdicts: Sequence[Verdict]) -> Html:
    """All claims with the verdicts of both readings; on a phone every row is a card."""
    cells = [tag("th", name, scope="col", role="columnheader") for name in HEADER]
    head = tag("thead", tag("tr", *cells, role="row"), role="rowgroup")
    names = anchors(verdicts)
    lines = [_line(verdict, names[k]) for k, verdict in enumerate(verdicts)]
    caption = tag("caption", "The paper's claims, in two readings and over the choices that it leaves open.")
    return tag("table", caption, head, tag("tbody", join(lines, "\n"), role="rowgroup"), class_="claims", role="table")


def _line(verdict: Verdict, anchor: str) -> Html:
    literal = badge(verdict.algorithm1.verdict) if verdict.algorithm1 else tag("span", SAME, class_="soft")
    flips = verdict.share.flips if verdict.share else ""
    section5, algorithm1, holds_in, flipped = HEADER[1:]
    cells = [
        tag("th", tag("a", verdict.claim, href=f"#{anchor}"), " ", _where(verdict), scope="row", role="rowheader"),
        _cell(section5, badge(verdict.section5.verdict)),
        _cell(algorithm1, literal),
        _cell(holds_in, _share(verdict.share)),
        _cell(flipped, flips),
    ]
    return tag("tr", *cells, role="row")


def _cell(name: str, shown: str) -> Html:
    """A cell that a card leaves out where there is nothing to show."""
    return tag("td", shown or "–", class_="" if shown else "none", role="cell", data_name=name)


def _where(verdict: Verdict) -> Html:
    return tag("span", shown_where(verdict.place), class_="where")


def _share(share: Share | None) -> Html:
    """A bar and the numbers."""
    words = share_in_words(share)
    return tag("span", _bar(share), words, class_="share") if share and words else Html()


def _bar(share: Share) -> Html:
    """Where it holds, is undecided and does not hold, from left to right; the words beside it say the same."""
    parts = {"holds": share.holds, "open": share.undecided, "fails": share.fails}
    pieces = [tag("span", class_=kind, style=f"width:{100 * n / share.of:.2f}%") for kind, n in parts.items() if n]
    return tag("span", join(pieces), class_="bar", aria_hidden="true")


def details(verdicts: Mapping[str, Verdict]) -> list[Html]:
    """Claim by claim, by anchor: the sentence, what came out in each reading, the specifications, and the rule."""
    return [_detail(verdict, anchor) for anchor, verdict in verdicts.items()]


def _detail(verdict: Verdict, anchor: str) -> Html:
    parts = [
        tag("h4", verdict.claim),
        *_quotation(verdict.quote, verdict.place),
        *_readings(verdict),
        *_specifications(verdict.share),
    ]
    rule = [tag("p", tag("em", "Rule:"), " ", verdict.rule, class_="rule")] if verdict.rule else []
    return tag("article", join([*parts, *rule], "\n"), class_="claim", id=anchor)


def _quotation(quote: str, place: str) -> list[Html]:
    if not quote:
        return [tag("p", place, class_="soft")] if place else []
    words = quote if quote[0] in "“\"'" else f"“{quote}”"
    return [tag("blockquote", tag("p", words), tag("footer", place))]


def _readings(verdict: Verdict) -> list[Html]:
    if verdict.algorithm1 is None:
        return [_reading("Both readings", verdict.section5)]
    return [_reading(name, outcome(verdict, reading)) for reading, name in READINGS.items()]


def _reading(name: str, found: Outcome) -> Html:
    """One reading: its verdict, the statistic, the parts with another verdict, and a likely reason."""
    said = [tag("p", found.statistic)] if found.statistic else []
    apart = [(part, verdict) for part, verdict in found.parts.items() if verdict != found.verdict]
    listed = (tag("li", badge(verdict), f" {part}") for part, verdict in apart)
    title = "Part by part, at this scale:" if found.verdict == UNTESTED else "Parts that come out otherwise:"
    said += [tag("p", title, class_="soft"), tag("ul", join(listed))] if apart else []
    said += [tag("p", tag("em", "Likely reason:"), " ", found.reason, class_="reason")] if found.reason else []
    head = tag("p", tag("span", name, class_="name"), " ", badge(found.verdict))
    return tag("div", head, tag("div", join(said)), class_="reading")


def _specifications(share: Share | None) -> list[Html]:
    if share is None or not share.of:
        return []
    words = f" Holds in {share.holds} of {share.of} specifications ({percent(share)}), does not hold in {share.fails}, "
    words += f"undecided in {share.undecided}."
    words = f" Specifications in which it holds, by world: {share_in_words(share)}." if share.by_world else words
    flips = f" What flips it: {share.flips.rstrip('.')}." if share.flips else ""
    return [tag("p", _bar(share), f"{words}{flips}", class_="share")]


def protocol_page() -> list[Html]:
    """The sentences of the paper that fix the protocol, and what is done."""
    parts = []
    for reading in protocol.READINGS.values():
        parts += [tag("h3", reading.title), paragraph(reading.about)]
        parts += _quotation(reading.quote, reading.place)
    rows = [[one.what, f"“{one.quote}”", one.place, one.done.replace("`", "")] for one in protocol.CHOICES]
    header = ["what", "the paper", "where", "here"]
    return [*parts, table(header, rows, "Sentences that fix the protocol; what they leave open is varied.")]
