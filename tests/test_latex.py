"""Tables as LaTeX: what it would misread is escaped, symbols are mathematics, and every line has its cells."""

import re

import pandas as pd
import pytest

from revealed.latex import escape, is_number, tabular


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("95 % of a_b & #1 {x} $", r"95 \% of a\_b \& \#1 \{x\} \$"),
        ("a\\b^c~d", r"a\textbackslash{}b\textasciicircum{}c\textasciitilde{}d"),
        ("16² × 3 ± 2", r"16$^{2}$ $\times$ 3 $\pm$ 2"),
        ("π̃ and π̂_E", r"$\tilde{\pi}$ and $\hat{\pi}$\_E"),
        ("×40 ✓", r"$\times$40 $\surd$"),
        ("γ ≤ Σ, −1 → ∞", r"$\gamma$ $\le$ $\Sigma$, $-$1 $\to$ $\infty$"),
        ("(I − γT)⁻¹ p₀", r"(I $-$ $\gamma$T)$^{-}$$^{1}$ p$_{0}$"),
        ("λ and Λ", r"$\lambda$ and $\Lambda$"),
        ("Müller, x̂", r"Müller, $\hat{x}$"),
        ("“so” – [sic]*", "``so'' -- {[}sic{]}{*}"),
        ("𝟛 中", "3 ?"),
    ],
)
def test_text_is_escaped(text, expected):
    assert escape(text) == expected


def test_a_table_has_its_rules_columns_and_cells():
    frame = pd.DataFrame({"n": [1, 10], "EVD": ["1.5 ± 0.2", "0.3 ± 1e-05"], "how": ["5× ended", "x & y"]})
    text = tabular(frame, "Mean, 95 %\nof seeds")
    lines = text.splitlines()
    assert lines[0] == "% Mean, 95 % of seeds"  # one line: a second would be set
    assert lines[2] == r"\begin{tabular}{rrl}"
    assert [line for line in lines if line.endswith("rule")] == [r"\toprule", r"\midrule", r"\bottomrule"]
    rows = [line for line in lines if line.endswith(r"\\")]
    assert [len(re.split(r"(?<!\\)&", row)) for row in rows] == [3, 3, 3]
    assert text.count("{") == text.count("}")


def test_long_texts_are_set_in_lines():
    frame = pd.DataFrame({"claim": ["a long sentence, " * 5], "n": [3]})
    assert r"\begin{tabular}{p{0.25\linewidth}r}" in tabular(frame, "")


@pytest.mark.parametrize(
    "text", ["12", "3.1 ± 0.2", "1e-05", "−4", "≤ 0.5", "×40 ✓", "0.500* (×8)", "95 %", "5.2 s", "2 ± ∞", "–", ""]
)
def test_numbers(text):
    assert is_number(text)


@pytest.mark.parametrize("text", ["5× converged", "1, 3, 5 trajectories", "3.11.7 (main)", "yes", "3c8f4d"])
def test_words(text):
    assert not is_number(text)
