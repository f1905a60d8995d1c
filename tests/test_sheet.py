"""Facts, a table and notes as text, HTML and LaTeX: columns align, numbers can be read back, nothing can break out."""

import re

import hypothesis.strategies as st
import pytest
from hypothesis import given

from fits import Reader
from revealed.sheet import Printed, Sheet, clean, display_width, number_column, probability, ratio, typeset

SIZES = st.floats(-12, 12).map(lambda power: 10.0**power)
NUMBERS = st.builds(lambda size, sign: sign * size, SIZES, st.sampled_from([-1.0, 1.0]))
NASTY = ["<script>alert(1)</script>", "a & b_c 50% #1 {x} $y$ ~ ^ \\", "two\nlines\x1b[31m", "\"quoted\" 'so'"]


@given(NUMBERS)
def test_a_printed_number_is_the_number_to_four_digits(value):
    (text,) = number_column([value])
    assert float(text) == pytest.approx(value, rel=5.01e-4)
    assert len(text) <= 12


@given(st.lists(NUMBERS, min_size=2, max_size=6))
def test_every_number_of_a_column_keeps_its_digits(values):
    for text, value in zip(number_column(values), values, strict=True):
        assert float(text) == pytest.approx(value, rel=5.01e-4)
        assert len(text) <= 12


@given(st.lists(st.floats(1e-3, 1e4), min_size=2, max_size=6))
def test_plain_numbers_of_a_column_have_the_same_decimals(values):
    texts = number_column(values)
    assert len({len(text.partition(".")[2]) for text in texts}) == 1
    assert not any("e" in text for text in texts)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([10.075, 2.293], ["10.0750", "2.2930"]),  # the digits that Rust printed
        ([1e-6, 1e8], ["1.0000e-06", "1.0000e+08"]),
        ([0.0, -0.0, 0.5], ["0.0000", "0.0000", "0.5000"]),
        ([0.00123456, 1.0], ["0.001235", "1.000000"]),
        ([float("nan"), float("inf"), -float("inf")], ["–", "inf", "-inf"]),
        ([123456.789, 0.00012], ["123456.789", "0.0001200"]),  # too long with common decimals: each its own
    ],
)
def test_numbers_as_a_person_writes_them(values, expected):
    assert number_column(values) == expected


def test_ratios_and_probabilities_have_three_decimals():
    assert [ratio(v) for v in (6.3685, -0.00001, 123456.0, float("nan"))] == ["6.369", "0.000", "1.23e+05", "–"]
    assert [probability(v) for v in (0.04996, 0.0, float("nan"))] == ["0.050", "0.000", "–"]


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("-3304.155", "−3304.155"),
        ("-1.3000e-06", "−1.3000×10⁻⁶"),
        ("(1.5820)", "(1.5820)"),
        ("(1.0e+07)  ", "(1.0×10⁷)"),
        ("-2.5000*** ", "−2.5000***"),
        ("first-order", "first-order"),
        ("–", "–"),
        ("1-2", "1-2"),
    ],
)
def test_numbers_are_set_as_in_a_book(cell, expected):
    assert typeset(cell) == expected


SHEET = Sheet(
    caption="What a & b cost",
    head=("", "coef", "std err"),
    blocks=((("a", "1.0000", "0.1000"), ("π̃ of 中", "-22.5000", "–")), (("n", "10", ""),)),
    left=(("Method", "NFXP"), ("Type", "a text that is far too long to stand in half of a line")),
    right=(("Observations", "12"), ("Log likelihood", "-1.500"), ("Seconds", "0.1")),
    notes=("A first note. " * 9, "x < y & z"),
)


def test_text_columns_end_below_each_other():
    lines = SHEET.text().splitlines()
    rows = [line for line in lines if line.startswith(("a ", "π̃")) or "coef" in line]
    assert len(rows) == 3
    coef = [display_width(row[: re.search(r"coef|1\.0000|22\.5000", row).end()]) for row in rows]  # pyright: ignore
    assert len(set(coef)) == 1
    assert len({display_width(row) for row in rows}) == 1


def test_text_is_as_wide_as_its_rules_and_the_rules_are_ascii():
    lines = SHEET.text().splitlines()
    rules = [line for line in lines if set(line) <= set("=-")]
    assert [rule[0] for rule in rules] == ["=", "=", "-", "-", "=", "="]
    assert {len(rule) for rule in rules} == {78}
    assert max(display_width(line) for line in lines) <= 78


def test_a_fact_that_is_too_long_has_its_own_line():
    lines = SHEET.text().splitlines()
    assert lines[1].split() == ["Method:", "NFXP", "Observations:", "12"]
    assert lines[2].split() == ["Log", "likelihood:", "-1.500"]
    assert lines[4].split(maxsplit=1) == ["Type:", "a text that is far too long to stand in half of a line"]


def test_long_names_make_the_table_wider_and_nothing_else():
    long = Sheet(caption="", head=("", "coef"), blocks=((("x" * 90, "1.0"),),)).text().splitlines()
    assert len(long[0]) > 90
    assert long[-2].endswith("1.0")


def test_html_has_the_cells_in_their_order_and_is_well_formed():
    page = Reader(SHEET.html())
    assert page.rows == [
        ["Method:", "NFXP", "Observations:", "12"],
        ["Type:", "a text that is far too long to stand in half of a line", "Log likelihood:", "−1.500"],
        ["", "", "Seconds:", "0.1"],
        ["", "coef", "std err"],
        ["a", "1.0000", "0.1000"],
        ["π̃ of 中", "−22.5000", "–"],
        ["n", "10", ""],
    ]
    assert "x < y & z" in page.words


def test_latex_has_a_rule_between_blocks_and_the_facts_below():
    lines = SHEET.latex().splitlines()
    assert r"\begin{tabular}{lrr}" in lines
    body = lines[lines.index(r"\midrule") + 1 : lines.index(r"\bottomrule")]
    assert body[0] == r"a & 1.0000 & 0.1000 \\"
    assert body[2:] == [r"\midrule", r"n & 10 &  \\"]
    foot = "\n".join(lines[lines.index(r"\bottomrule") :])
    assert r"Method: NFXP. Type:" in foot
    assert r"Log likelihood: $-$1.500." in foot
    assert r"x \textless{} y \& z" in foot


def named(name: str) -> Sheet:
    """A sheet with this name in every place."""
    pair = (name, name)
    return Sheet(name, ("", name), (((name, "1.0"),),), left=(pair,), right=(pair,), notes=(name,), title=name)


@pytest.mark.parametrize("name", NASTY)
def test_no_name_can_break_out(name):
    sheet, plain = named(name), named("n")
    assert Reader(sheet.html()).kinds == Reader(plain.html()).kinds
    assert [clean(name), "1.0"] in Reader(sheet.html()).rows
    lines = sheet.latex().splitlines()
    assert len(lines) == len(plain.latex().splitlines())
    bare = re.sub(r"\\[{}\\%&#$_]", "", "\n".join(lines[1:]))  # without the caption, a comment, and what is escaped
    assert bare.count("{") == bare.count("}")
    assert bare.count("&") == 2
    assert bare.count("%") == 1
    assert all(line.isprintable() for line in [*lines, *sheet.text().splitlines()])


class Wide(Printed):
    def _sheet(self) -> Sheet:
        row = ("name", *(["0.12345"] * 6))
        return Sheet(
            "wide", ("", "before", "after", "change", "se", "lower", "upper"), ((row,),), notes=("raise tol.",)
        )


def test_a_narrow_page_goes_without_what_can_be_spared():
    narrow = Wide().text(50, spare=("se",))
    assert max(map(len, narrow.splitlines())) == 50
    assert narrow.splitlines()[1].split() == ["before", "after", "change", "lower", "upper"]
    assert narrow.splitlines()[3].split() == ["name", *["0.12345"] * 5]
    assert Wide().text(78, spare=("se",)) == Wide().text(78)  # there is room


def test_notes_can_be_reworded():
    assert Wide().text(reword=str.upper) == Wide().text().replace("raise tol.", "RAISE TOL.")
