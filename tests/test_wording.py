"""The library's messages in words of the command line; names that came with the data stay."""

import re

import pytest

from revealed.commands.wording import FIT, PANEL, in_flags


@pytest.mark.parametrize(
    ("said", "typed"),
    [
        ("Use mdp.base.unroll(30) or shorter trajectories.", "Use --horizon 30 or shorter trajectories."),
        ("`columns`: expected x; got y.", "`--columns`: expected x; got y."),
        ("`path`: expected a file; got 'x'.", "`PANEL`: expected a file; got 'x'."),
        ("as in columns=['shops', 'green'].", "as in --columns shops,green."),
        ("a column of its own (next_state=).", "a column of its own (--next-state)."),
        ('smoothing=1.0, or unseen="stay".', "--smoothing 1.0, or --unseen stay."),
        (
            "smooth (smoothing=1.0, or a kernel over coordinates=)",
            "smooth (--smoothing 1.0, or a kernel (--kernel 1.0, with --coordinates x,y unless states are bins))",
        ),
        ("They are whole: .astype(int) will do.", "They are whole: write them without a decimal point."),
        ("labels (rv.discretize makes bins).", "labels (--bins COLUMN=20 makes bins)."),
        ("try bandwidth=(1, 0.5).", "try --kernel 1."),
        ("Mark them with feasible= or terminal=, or go.", "Mark them with --terminal, or go."),
        ('Use bands="bootstrap", or None.', "Use --bands bootstrap or none."),
        ("Use bands=None.", "Use --bands none."),
        (
            "Pass first_step=rv.first_step.GoalLogit(l2=1e-3), fewer features, or another first step.",
            "Use fewer features, or another --first-step.",
        ),
        ("fit.bootstrap() resamples agents instead", "--errors bootstrap resamples agents instead"),
        ('Use fit.with_errors("bootstrap").', "Use --errors bootstrap."),
        ('Use kind="cluster".', "Use --errors cluster."),
        ("Raise `max_iter`.", "Raise --max-iter."),
        ("Raise max_iter, loosen tol, or set l2=1e-4.", "Raise --max-iter, loosen --tol, or set --l2 1e-4."),
        ('let gaps="break" end a trajectory there.', "let --gaps break end a trajectory there."),
        ("whole numbers, or dates with period=", "whole numbers, or dates with --period"),
        ("Pass keep_steps=True to read it into memory.", "Make the panel smaller."),
        (
            "`period`: expected None, where times are not dates",
            "`--period`: expected nothing, where times are not dates",
        ),
        ('Try solver="lu", or l2=1e-4.', "Try --l2 1e-4."),
        ('(in a fit: start= with such parameters, or start="ccp")', "(in a fit: --start ccp)"),
        ("As in discount=0.95.", "As in --discount 0.95."),
        ('(in a fit: start= with more negative parameters, or start="ccp")', "(in a fit: --start ccp)"),
    ],
)
def test_arguments_are_flags(said, typed):
    assert in_flags(said, PANEL) == typed
    assert in_flags(typed, PANEL) == typed  # and what is in flags already stays


@pytest.mark.parametrize(
    "text",
    [
        "got 'next_state=5'.",
        "got 'max_iter' and 'rv.discretize' (first at row 3).",
        r"got 'it\'s l2=3'.",
        "rv.load('trips-fit', reward=...).",
        "gradient norm 1.8e-10 <= tol 1.0e-09.",
        "Dear reader, a=1 and width= are nothing here; x == 3.",
    ],
)
def test_what_came_with_the_data_stays(text):
    assert in_flags(text, PANEL) == text
    assert in_flags(text) == text


def test_backquotes_in_notes_hold_names_of_parameters():
    note = "choices do not change along `weight` − 2·`l2=3`."
    assert in_flags(note) == note
    assert (
        in_flags('there is no band; `fit.with_errors("robust")` has one.')
        == "there is no band; --errors robust has one."
    )


def test_each_command_calls_its_argument_by_its_name():
    assert [re.findall("`(.*?)`", in_flags("`path`: expected x.", names)) for names in (PANEL, FIT, {})] == [
        ["PANEL"],
        ["FIT"],
        ["path"],
    ]


def test_what_a_road_network_refuses_is_not_offered():
    """A start by numbers has no flag, and the discount of a road network is 1."""
    from revealed.goal_estimation import _NO_START

    typed = in_flags(_NO_START, PANEL)
    assert "start=" not in typed
    assert "--start" not in typed
    assert typed.endswith(
        "add a feature that is a cost of every move, such as the constant of a road network (--columns …,constant); "
        "without a road network a --discount below 1 does, too."
    )
