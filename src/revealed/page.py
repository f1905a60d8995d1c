"""Pieces of an HTML page that needs nothing but itself: no request, no script, no font from elsewhere.

`Html` is text that is HTML already; every other string is escaped on its way into the page, so that nothing that a
run wrote can break it. The policy in the head forbids the browser to load anything, which keeps us honest.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files

from revealed.latex import is_number

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
VOID = {"img", "meta"}
SENTENCE = 40  # a cell with more characters is a text, which gets a column wide enough to read it
BRIEF = 12  # a cell with no more characters stays on one line
FLAG = 24  # code with no more characters does, too: a line that ends in the middle of `--out` reads badly
# Widths in characters that a column needs at least, and how many fit on a page of 72rem in each size of type.
TEXT, SENTENCES, GAP = 12, 22, 2
ROOM = {"": 120, "wide": 140, "wider": 160}
BOLD = 1.2  # how much wider the letters of a header are
INCH = 96  # CSS pixels
LEGIBLE = 0.72  # how far a figure may shrink before its text is too small; on a phone it scrolls instead


class Html(str):
    """Text that is HTML already."""


def tag(kind: str, /, *children: str, **attributes: object) -> Html:
    """An element: `tag("a", "to the table", href="#table")`. `class_` is `class`, `aria_label` is `aria-label`."""
    named = {key.rstrip("_").replace("_", "-"): escape(str(value)) for key, value in attributes.items() if value != ""}
    given = "".join(f' {name}="{value}"' for name, value in named.items())
    return Html(f"<{kind}{given}>" if kind in VOID else f"<{kind}{given}>{join(children)}</{kind}>")


def join(children: Iterable[str], between: str = "") -> Html:
    return Html(between.join(child if isinstance(child, Html) else escape(child) for child in children))


def with_code(text: str) -> Html:
    """Text in which `this` is code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return join([text])
    return join(_code(part) if k % 2 else part for k, part in enumerate(parts))


def _code(text: str) -> Html:
    return tag("code", text, class_="brief" if len(text) <= FLAG else "")


def section(title: str, *children: str, id: str, level: int = 2) -> Html:
    return tag("section", join([tag(f"h{level}", title), *children], "\n"), id=id)


def paragraph(text: str, class_: str = "") -> Html:
    return tag("p", with_code(text), class_=class_)


def note(text: str) -> Html:
    return tag("p", with_code(text), class_="note", role="note")


def figure(png: bytes, width: float, caption: str, alt: str, saved: str = "", number: str = "") -> Html:
    """A picture of so many inches, its caption, under which name it was saved, if it was, and the number that it has
    elsewhere ("Figure 1"). It scrolls where it would shrink too far to be read."""
    full = round(width * INCH)
    image = tag(
        "img",
        src="data:image/png;base64," + b64encode(png).decode("ascii"),
        alt=alt,
        style=f"width:100%;max-width:{full}px;min-width:{round(LEGIBLE * full)}px",
    )
    where = [" ", tag("small", "Saved as ", tag("code", saved), ".")] if saved else []
    named = [tag("strong", f"{number}."), " "] if number else []
    return tag("figure", _scrolling(image, caption), tag("figcaption", *named, caption, *where))


def table(header: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> Html:
    """A table as wide as the page at most, which scrolls in its own box where the page is narrow; a column of numbers
    stands to the right."""
    body = [list(row) for row in rows]
    kinds = [_kind([row[k] for row in body]) for k in range(len(header))]
    head = tag("tr", join(tag("th", name, scope="col", class_=kind) for name, kind in zip(header, kinds)))
    lines = [tag("tr", join(_cell(k, cell, kinds[k]) for k, cell in enumerate(row))) for row in body]
    parts = [tag("caption", tag("span", caption)), tag("thead", head), tag("tbody", join(lines, "\n"))]
    return _scrolling(tag("table", join(parts, "\n"), class_=_size(header, body, kinds)), caption)


def _kind(column: Sequence[str]) -> str:
    """Numbers and brief words stay whole, texts are broken into lines."""
    longest = max(map(len, column), default=0)
    if column and all(map(is_number, column)):
        return "number"
    return "brief" if longest <= BRIEF else "text" if longest <= SENTENCE else "words"


def _size(header: Sequence[str], body: Sequence[Sequence[str]], kinds: Sequence[str]) -> str:
    """The type in which a table fits on the page: smaller for wide ones, and if need be numbers in two lines."""
    needed = [_needed(name, [row[k] for row in body], kinds[k]) + GAP for k, name in enumerate(header)]
    return next((size for size, room in ROOM.items() if sum(needed) <= room), "wider tight")


def _needed(name: str, column: Sequence[str], kind: str) -> float:
    """How many characters wide a column is at least."""
    header = BOLD * max(map(len, name.split()), default=0)
    if kind in ("number", "brief"):
        return max(header, *map(len, column), 0)
    longest_word = max((len(word) for text in column for word in text.split()), default=0)
    return max(header, longest_word, TEXT) if kind == "text" else max(header, SENTENCES)


def _cell(column: int, text: str, class_: str) -> Html:
    return tag("th", text, scope="row", class_=class_) if column == 0 else tag("td", text, class_=class_)


def foldable(summary: str, inside: str, class_: str = "") -> Html:
    """Folded away on a screen, opened in print (but for what is there `twice`)."""
    return tag("details", tag("summary", summary), inside, class_=class_)


def facts(pairs: Mapping[str, str]) -> Html:
    """What is called what, as a list."""
    return tag(
        "dl", join((tag("div", tag("dt", name), tag("dd", with_code(text))) for name, text in pairs.items()), "\n")
    )


def contents(entries: Mapping[str, str]) -> Html:
    """Where to find what: titles by anchor."""
    items = join((tag("li", tag("a", title, href=f"#{anchor}")) for anchor, title in entries.items()), "\n")
    return tag("nav", tag("h2", "Contents", id="contents"), tag("ol", items), aria_labelledby="contents")


def document(title: str, header: str, nav: str, main: str) -> str:
    """The whole page."""
    style = files("revealed").joinpath("report.css").read_text(encoding="utf-8")
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Html("\n" + style)),
    ]
    body = [tag("header", header), nav, tag("main", main)]
    inside = [tag("head", join(head, "\n")), tag("body", join(body, "\n"))]
    return "<!doctype html>\n" + tag("html", join(inside, "\n"), lang="en") + "\n"


def _scrolling(inside: Html, label: str) -> Html:
    """A box that scrolls by itself where the page is narrow; with a place in the order of the Tab key."""
    return tag("div", inside, class_="scroll", tabindex=0, role="group", aria_label=label)
