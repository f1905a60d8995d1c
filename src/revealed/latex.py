"""Tables for a paper: a `tabular` with the rules of booktabs, in characters that every LaTeX engine knows."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

NUMBER = re.compile(
    r"|–|nan|[-−]?(inf|∞)|[<>≤≥≈+−~× -]*\d[\d.,e+−-]*( ?± ?(inf|∞|nan|–|\d[\d.,e+−-]*))?\*?"
    r"( \(×[\d.,]+\))?( ✓)? ?(×|%|s|ms|min|h|kB|MB|GB|MiB|GiB)?"
)
WIDE = 32  # a column whose longest cell has more characters is broken into lines
SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿᵀ", "0123456789+-nT"))
SUBSCRIPTS = dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789"))
# fmt: off
GREEK = {
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "kappa", "lambda", "mu", "nu", "xi", "pi",
    "rho", "sigma", "tau", "phi", "chi", "psi", "omega",
}
# fmt: on
# letters whose capitals LaTeX has a name for; the others look Latin
CAPITALS = {"gamma", "delta", "theta", "lambda", "xi", "pi", "sigma", "phi", "psi", "omega"}
ACCENTS = {"\u0303": r"\tilde", "\u0302": r"\hat", "\u0304": r"\bar"}  # they follow the letter that they stand on
TEXT = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "%": r"\%",
    "_": r"\_",
    "&": r"\&",
    "#": r"\#",
    "$": r"\$",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "[": "{[}",  # at the start of a line LaTeX would take it for an option of the line before, and so for the star
    "]": "{]}",
    "*": "{*}",
    "…": r"\dots{}",
    "–": "--",
    "—": "---",
    "“": "``",
    "”": "''",
    "‘": "`",
    "’": "'",
    "\u00a0": "~",
    "\u202f": "~",
    "\n": " ",
}
MATHS = {
    "×": r"\times",
    "±": r"\pm",
    "−": "-",
    "·": r"\cdot",
    "≤": r"\le",
    "≥": r"\ge",
    "≠": r"\ne",
    "≈": r"\approx",
    "→": r"\to",
    "←": r"\leftarrow",
    "∞": r"\infty",
    "∈": r"\in",
    "∂": r"\partial",
    "√": r"\surd",
    "✓": r"\surd",  # a tick that needs no package
    "‖": r"\|",
    "°": r"{}^\circ",
    "½": r"\tfrac12",
}


def escape(text: str) -> str:
    """Text as LaTeX sets it: commands for what it would misread, mathematics for symbols, and letters as they are."""
    pieces: list[str] = []
    for character in unicodedata.normalize("NFC", text):
        if character in ACCENTS and pieces:
            pieces.append(f"${ACCENTS[character]}{{{pieces.pop().strip('$')}}}$")
        else:
            pieces.append(_one(character))
    return "".join(pieces)


def _one(character: str) -> str:
    if character in TEXT:
        return TEXT[character]
    for letters, mark in ((SUPERSCRIPTS, "^"), (SUBSCRIPTS, "_")):
        if character in letters:
            return f"${mark}{{{letters[character]}}}$"
    command = MATHS.get(character) or _greek(character)
    return f"${command}$" if command else _letter(character)


def _greek(character: str) -> str | None:
    words = unicodedata.name(character, "").lower().replace("lamda", "lambda").split()
    if words[:1] != ["greek"] or words[-1] not in GREEK:
        return None
    if "capital" in words:
        return "\\" + words[-1].capitalize() if words[-1] in CAPITALS else None
    return "\\" + words[-1]


def _letter(character: str) -> str:
    """A letter of a Latin alphabet stays; anything else becomes what it is made of, or a question mark."""
    if character.isascii() or unicodedata.name(character, "").startswith("LATIN"):
        return character
    return unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode() or "?"


def tabular(
    frame: pd.DataFrame, caption: str, align: str = "", rules: Collection[int] = (), foot: Sequence[str] = ()
) -> str:
    """The table as a `tabular`, to be put into a `table` with `\\usepackage{booktabs}`; the caption is a comment.

    `align` has one letter per column (by default numbers stand to the right); a rule stands before each row in
    `rules`; the texts of `foot` stand below the table, in lines of its width.
    """
    cells = [[escape(str(cell)) for cell in row] for row in frame.itertuples(index=False)]
    lines = [
        "% " + " ".join(caption.split()),
        "% \\usepackage{booktabs}",
        f"\\begin{{tabular}}{{{align or ''.join(_columns(frame))}}}",
        "\\toprule",
        " & ".join(escape(str(name)) for name in frame.columns) + " \\\\",
        "\\midrule",
        *(("\\midrule\n" if k in rules else "") + " & ".join(row) + " \\\\" for k, row in enumerate(cells)),
        "\\bottomrule",
        *_foot(frame, foot),
        "\\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _foot(frame: pd.DataFrame, texts: Sequence[str]) -> list[str]:
    """A row over all columns. One wider than the columns would pull them apart, so it is kept within what their
    characters surely take, unless that is too narrow for sentences."""
    if not texts:
        return []
    n = frame.shape[1]
    longest = [max([len(str(frame.columns[k])), *(len(str(cell)) for cell in frame.iloc[:, k])]) for k in range(n)]
    width = f"\\dimexpr {max(18.0, 0.42 * sum(longest)):.1f}em + {2 * (n - 1)}\\tabcolsep\\relax"
    lines = "\\par\n".join(escape(text) for text in texts)
    return [f"\\multicolumn{{{n}}}{{p{{{width}}}}}{{\\footnotesize\\raggedright", lines + "} \\\\"]


def _columns(frame: pd.DataFrame) -> list[str]:
    """Numbers to the right, words to the left, long texts in lines of a share of the page."""
    texts = [[str(cell) for cell in frame.iloc[:, k]] for k in range(frame.shape[1])]
    long = [max(map(len, column), default=0) > WIDE for column in texts]
    share = f"p{{{0.75 / max(3, sum(long)):.2f}\\linewidth}}"
    return [share if wide else "r" if _numbers(column) else "l" for wide, column in zip(long, texts)]


def _numbers(column: list[str]) -> bool:
    return bool(column) and all(is_number(cell) for cell in column)


def is_number(text: str) -> bool:
    """Whether a cell reads as a number: `12`, `3.1 ± 0.2`, `×40 ✓`, `0.5 (×8)`, `5.2 s`, `inf`, or nothing at all."""
    return NUMBER.fullmatch(text.strip()) is not None
