"""What a result prints: facts, a table and notes, written once and set as text, as HTML and as LaTeX.

Numbers come in as text. In plain text they stand as they are; in HTML and LaTeX they get a true minus and powers of
ten. Nothing that came with the data (names of parameters, labels) can break a line, a page or a document.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, zip_longest
from math import floor, isfinite, log10
from typing import TYPE_CHECKING, Any
from unicodedata import combining, east_asian_width

from revealed.checks import require_count
from revealed.errors import InvalidInput
from revealed.gates import require_function, require_list, require_text
from revealed.labels import text_of
from revealed.latex import tabular
from revealed.voices import shown, words

if TYPE_CHECKING:
    from revealed.page import Html

WIDTH = 78
LONGEST_LINE = 100_000  # characters of a line
WIDEST = 14  # characters of a column of numbers that is given more room than it needs
GAP = 2  # spaces between columns, at least
SMALLEST, LARGEST = 1e-4, 1e7  # between them numbers are written without a power of ten
LONGEST = 12  # characters of a number in a column with common decimals
MISSING = "–"
NUMBER = re.compile(r"\(?(?P<sign>-?)(?P<digits>\d[\d.]*)(?:e(?P<power>[+-]\d+))?\)?\**")
SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")

Pair = tuple[str, str]
Row = tuple[str, ...]


@dataclass(frozen=True)
class Sheet:
    """`left` and `right` are facts (name, text) in two columns; `blocks` of rows under `head`, each row a label and
    cells, with a rule between blocks; `notes` are sentences. `caption` says in a line what the table shows."""

    caption: str
    head: Row
    blocks: tuple[tuple[Row, ...], ...]
    left: tuple[Pair, ...] = ()
    right: tuple[Pair, ...] = ()
    notes: tuple[str, ...] = ()
    title: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "notes", tuple(map(words, self.notes)))

    @property
    def rows(self) -> list[Row]:
        return [row for block in self.blocks for row in block]

    def without(self, columns: Sequence[str]) -> Sheet:
        """The same without the columns of these names."""
        kept = [k for k, name in enumerate(self.head) if name not in columns]
        blocks = tuple(tuple(tuple(row[k] for k in kept) for row in block) for block in self.blocks)
        return replace(self, head=tuple(self.head[k] for k in kept), blocks=blocks)

    def text(self, least: int = WIDTH) -> str:
        """Lines of equal width for a terminal, wider than `least` only where the cells need it."""
        columns = _column_widths([self.head, *self.rows], least)
        width = max(least, sum(columns))
        double, single = "=" * width, "-" * width
        lines = [double, *_facts(self.left, self.right, width)] if self.left else []
        lines += [double, *([clean(self.title)] if self.title else []), _line(self.head, columns), single]
        for k, block in enumerate(self.blocks):
            lines += [single] if k else []
            lines += [_line(row, columns) for row in block]
        lines += [double] + [line for note in self.notes for line in _wrap(note, width)]
        return "\n".join(lines if not self.notes else [*lines, double])

    def html(self) -> str:
        """A fragment of a page: it takes type and colours from where it is shown."""
        from revealed.page import join, tag, with_code

        table = _html_table(self)
        facts = [_html_facts(self.left, self.right)] if self.left else []
        title = [tag("p", self.title, style="margin:.3em 0")] if self.title else []
        notes = [tag("p", with_code(note), style="margin:.3em 0;max-width:48em") for note in self.notes]
        return tag("div", join([*facts, *title, table, *notes], "\n"), style="overflow-x:auto")

    def latex(self) -> str:
        """A `tabular` with the rules of booktabs; facts and notes stand in small type below it."""
        import pandas as pd

        rows = [[typeset(cell) for cell in row] for row in self.rows]
        frame = pd.DataFrame(rows, columns=[typeset(cell) for cell in self.head])
        rules = list(accumulate(len(block) for block in self.blocks))[:-1]
        facts = ". ".join(f"{name}: {typeset(text)}" for name, text in (*self.left, *self.right))
        foot = [clean(text) for text in (self.title, facts and facts + ".", *self.notes) if text]
        return tabular(frame, clean(self.caption), align="l" + "r" * (len(self.head) - 1), rules=rules, foot=foot)


class Printed(ABC):
    """A result with a printed form: `print(result)`, a table in a notebook, `to_html()` and `to_latex()`."""

    @abstractmethod
    def _sheet(self) -> Sheet:
        """What is to be printed."""

    def __str__(self) -> str:
        return self._sheet().text()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return self.to_html()

    def text(self, width: int = WIDTH, reword: Callable[[str], str] | None = None, spare: Sequence[str] = ()) -> str:
        """The printed form in lines of `width` characters, longer only where the cells need it.

        `reword` respells its notes; columns called as in `spare` are left out where the table is too wide.
        """
        require_count("width", width)
        if width > LONGEST_LINE:
            raise InvalidInput("width", f"at most {LONGEST_LINE} characters", shown(width))
        if reword is not None:
            require_function("reword", reword, "None or a function from string to string")
        spare = require_list("spare", spare, "names of columns")
        for name in spare:
            require_text("spare", name, "names of columns")
        sheet = self._sheet()
        notes = sheet.notes if reword is None else tuple(reword(note) for note in sheet.notes)
        too_wide = sum(_column_widths([sheet.head, *sheet.rows], width)) > width
        return replace(sheet.without(spare) if too_wide else sheet, notes=notes).text(width)

    def to_html(self) -> str:
        """A fragment to be put into a page; all names in it are escaped."""
        return self._sheet().html()

    def to_latex(self) -> str:
        """A `tabular` to be put into a `table`; it needs `\\usepackage{booktabs}`."""
        return self._sheet().latex()


# numbers


def number_column(values: Iterable[float]) -> list[str]:
    """Numbers of one column with as many decimals as the smallest needs for four digits; powers of ten where zeros
    would be many; `–` for what is not a number."""
    numbers = [float(value) + 0.0 for value in values]  # + 0.0: no minus before zero
    places = [_decimals(value) for value in numbers if _is_plain(value)]
    common = [_number(value, max(places, default=4)) for value in numbers]
    if max(map(len, common), default=0) <= LONGEST:
        return common
    return [_number(value, _decimals(value) if _is_plain(value) else 4) for value in numbers]


def ratio(value: float) -> str:
    """A z statistic: three decimals while they mean something."""
    if not isfinite(value):
        return _number(value, 3)
    return f"{round(value, 3) + 0.0:.3f}" if abs(value) < 1e4 else f"{value:.2e}"


def probability(value: float) -> str:
    return _number(value, 3) if not isfinite(value) else f"{value:.3f}"


def _is_plain(value: float) -> bool:
    return value == 0.0 or SMALLEST <= abs(value) < LARGEST


def _decimals(value: float) -> int:
    """At least four digits that count, and four decimals where the number is not large."""
    first = floor(log10(abs(value))) if value else 0
    return 3 - first if first < 0 else 4 if first < 5 else 8 - first


def _number(value: float, places: int) -> str:
    if not isfinite(value):
        return MISSING if value != value else "inf" if value > 0 else "-inf"
    return f"{value:.{places}f}" if _is_plain(value) else f"{value:.4e}"


def typeset(cell: str) -> str:
    """A number as a book prints it: −1.5×10⁻⁶ for -1.5e-06. Other text stays."""
    cell = clean(cell)
    found = NUMBER.fullmatch(cell)
    if not found:
        return cell
    power = found["power"]
    body = found["digits"] + ("" if power is None else "×10" + str(int(power)).translate(SUPERSCRIPTS))
    return cell[: found.start("sign")] + ("−" if found["sign"] else "") + body + cell[_end(found) :]


def _end(found: re.Match[str]) -> int:
    return found.end("digits") if found["power"] is None else found.end("power")


# text


def clean(text: Any) -> str:
    """One line of what can be printed: a name with a line break or a control character cannot break a table."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(text_of(text).split()))


def display_width(text: str) -> int:
    """Columns of a terminal: marks that stand on a letter take none, letters of full width take two."""
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def _column_widths(rows: Sequence[Row], least: int) -> list[int]:
    """What the cells need, and what is left of the width spread over the columns of numbers."""
    needed = [max(display_width(_cell(row[k])) for row in rows) for k in range(len(rows[0]))]
    widths = [needed[0], *(n + GAP for n in needed[1:])]
    spare = max(0, least - sum(widths)) // max(1, len(widths) - 1)
    spread = [max(w, min(WIDEST, w + spare)) for w in widths[1:]]
    rest = least - widths[0] - sum(spread)
    return [widths[0] + (rest if 0 < rest < len(widths) else 0), *spread]


def _cell(text: str) -> str:
    """Spaces at the end are kept: they align what stands above a closing bracket."""
    return clean(text) + " " * (len(text) - len(text.rstrip(" ")))


def _line(row: Row, widths: Sequence[int]) -> str:
    cells = [_cell(text) for text in row]
    left = cells[0] + " " * (widths[0] - display_width(cells[0]))
    right = (" " * (w - display_width(cell)) + cell for cell, w in zip(cells[1:], widths[1:]))
    return (left + "".join(right)).rstrip()


def _facts(left: Sequence[Pair], right: Sequence[Pair], width: int) -> list[str]:
    """Two columns; a fact that is too long for its half has a line of its own below them."""
    label = max(display_width(clean(name)) for name, _ in (*left, *right)) + 2
    half = width // 2 + 1
    short = [pair for pair in left if label + display_width(clean(pair[1])) < half]
    lines = [
        _pad(_fact(one, label), half) + _pad_between(two, label, width - half)
        for one, two in zip_longest(short, right, fillvalue=("", ""))
    ]
    return [line.rstrip() for line in lines] + [_fact(pair, label) for pair in left if pair not in short]


def _fact(pair: Pair, label: int) -> str:
    return _pad(clean(pair[0]) + ":", label) + clean(pair[1]) if pair[0] else ""


def _pad_between(pair: Pair, label: int, width: int) -> str:
    """A name to the left and its text to the right end of the line."""
    name, text = _pad(_fact((pair[0], ""), label).rstrip(), label), clean(pair[1])
    return name + " " * (width - display_width(name) - display_width(text)) + text


def _pad(text: str, width: int) -> str:
    return text + " " * (width - display_width(text))


def _wrap(text: str, width: int) -> list[str]:
    from textwrap import wrap

    return wrap(clean(text), width, break_on_hyphens=False)


# HTML; styles stand with the elements, since a notebook shows a fragment without a head


def _html_facts(left: Sequence[Pair], right: Sequence[Pair]) -> Html:
    from revealed.page import join, tag

    rows = [
        tag("tr", join(_html_fact(pair, side) for pair, side in zip(both, ("left", "right"), strict=True)))
        for both in zip_longest(left, right, fillvalue=("", ""))
    ]
    return tag("table", tag("tbody", join(rows, "\n")), style=_TABLE)


def _html_fact(pair: Pair, side: str) -> Html:
    from revealed.page import join, tag

    name = clean(pair[0]) + ":" if pair[0] else ""
    words = tag("th", name, scope="row", style=_CELL + "text-align:left;font-weight:500")
    return join([words, tag("td", typeset(pair[1]), style=f"{_CELL}text-align:{side}")])


def _html_table(sheet: Sheet) -> Html:
    from revealed.page import join, tag

    head = tag("tr", join(_html_cell(k, cell, _HEAD) for k, cell in enumerate(sheet.head)))
    bodies = [
        tag("tbody", join((_html_row(row, _RULE if i == 0 else "") for i, row in enumerate(block)), "\n"))
        for block in sheet.blocks
    ]
    parts = [tag("thead", head), *bodies]
    return tag("table", join(parts, "\n"), style=_TABLE + "border-bottom:2px solid", aria_label=clean(sheet.caption))


def _html_row(row: Row, style: str) -> Html:
    from revealed.page import join, tag

    return tag("tr", join(_html_cell(k, cell, style) for k, cell in enumerate(row)))


def _html_cell(column: int, text: str, style: str) -> Html:
    from revealed.page import tag

    if column == 0:
        return tag("th", typeset(text), scope="row", style=_CELL + style + "text-align:left;font-weight:500")
    kind = "th" if style == _HEAD else "td"
    return tag(kind, typeset(text), style=_CELL + style + "text-align:right;font-variant-numeric:tabular-nums")


_TABLE = "border-collapse:collapse;margin:.5em 0;"
_CELL = "padding:.15em 1em .15em 0;white-space:nowrap;"
_HEAD = "border-top:2px solid;"
_RULE = "border-top:1px solid;"
