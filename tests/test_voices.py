"""One sentence in two voices: arguments are named once, for Python and for the command line; data stays as it is."""

import json
import pickle

import pytest

from revealed.errors import InvalidDemonstrations, InvalidInput, InvalidOption, SolverFailed
from revealed.voices import MARKS, Words, Written, arg, either, from_parts, marked, named, speak, words

FLAGS = {name: f"--{name.replace('_', '-')}" for name in ("reps", "errors", "columns", "l2", "max_iter", "joint")}
FLAGS |= {"path": "PANEL", "bands": "--bands"}

SAID = {
    arg("reps"): ("reps=", "--reps"),
    arg("max_iter"): ("max_iter=", "--max-iter"),
    named("max_iter"): ("max_iter", "--max-iter"),
    arg("errors", "bootstrap"): ('errors="bootstrap"', "--errors bootstrap"),
    arg("columns", ["shops", "green"]): ("columns=['shops', 'green']", "--columns shops,green"),
    arg("l2", 1e-4): ("l2=1e-4", "--l2 1e-4"),
    arg("l2", 0.95): ("l2=0.95", "--l2 0.95"),
    arg("l2", 1.0): ("l2=1.0", "--l2 1.0"),
    arg("reps", 30): ("reps=30", "--reps 30"),
    arg("joint", True): ("joint=True", "--joint"),
    arg("joint", False): ("joint=False", "--no-joint"),
    arg("bands", None): ("bands=None", "--bands none"),
    arg("--reps", 3): ("--reps 3", "--reps 3"),
    arg("n_states"): ("n_states=", "n_states="),  # has no flag
    named("path"): ("path", "PANEL"),
    either("rv.MDP(...)", "Leave it out"): ("rv.MDP(...)", "Leave it out"),
    either(f"fit.f({arg('joint', True)})", f"{arg('reps')} or {arg('joint', True)}"): (
        "fit.f(joint=True)",
        "--reps or --joint",
    ),
    "plain": ("plain", "plain"),
}


@pytest.mark.parametrize("text", SAID)
def test_what_each_voice_says(text):
    python, shell = SAID[text]
    assert speak(f"Use {text}.") == f"Use {python}."
    assert speak(f"Use {text}.", FLAGS) == f"Use {shell}."
    assert not set(words(text)) & set(MARKS)


@pytest.mark.parametrize("label", ["reps=", "`reps`", 'errors="bootstrap"', "--reps", "`kind`:", "{reps}", "l2=1e-4"])
def test_data_that_looks_like_an_argument_stays(label):
    text = f"got {label!r} of {label}; see {arg('reps')}."
    assert speak(text, FLAGS) == f"got {label!r} of {label}; see --reps."
    assert label in InvalidInput("reps", f"no {label}", label, label, f"Drop {label}.").told(FLAGS)


def test_sentences_keep_what_they_name():
    note = words(f"{arg('reps')} helps.")
    assert isinstance(note, Words)
    assert note == "reps= helps."
    assert speak(pickle.loads(pickle.dumps(note)), FLAGS) == "--reps helps."
    assert speak(words(f"Note: {marked(note)}"), FLAGS) == "Note: --reps helps."
    assert speak("Note: " + note + " So be it.", FLAGS) == "Note: --reps helps. So be it."
    assert speak(words(f"{arg('reps', Written('{n}'))} in {{a}}").format(n=3, a="reps="), FLAGS) == "--reps 3 in reps="
    assert words("no argument") == "no argument"
    assert not isinstance(words("no argument"), Words)


@pytest.mark.parametrize("text", SAID)
def test_sentences_go_through_files(text):
    note = Words(f"Use {text} or {text}.")
    written = json.dumps(note.parts)
    assert not set(json.loads(written) and written) & set(MARKS)
    assert marked(from_parts(json.loads(written))) == note.marked


def test_marks_that_came_with_the_data_are_dropped():
    assert speak(f"a{MARKS}b{MARKS[0]}c") == "abc"


# the three forms


def test_a_wrong_value():
    error = InvalidOption("reps", "a whole number", 1.5, "row 3", f"For example: {arg('reps', 400)}.")
    assert str(error) == "`reps`: expected a whole number; got 1.5 (first at row 3). For example: reps=400."
    assert error.told(FLAGS) == "`--reps`: expected a whole number; got 1.5 (first at row 3). For example: --reps 400."
    assert (error.form, error.got, error.remedy) == ("value", 1.5, "For example: reps=400.")


def test_a_conflict():
    error = InvalidOption.conflict("reps", f"requires `{arg('errors', 'bootstrap')}`", remedy=f"Drop {arg('reps')}.")
    assert type(error) is InvalidOption
    assert isinstance(error, ValueError)
    assert str(error) == '`reps` requires `errors="bootstrap"`. Drop reps=.'
    assert error.told(FLAGS) == "`--reps` requires `--errors bootstrap`. Drop --reps."
    assert (error.form, error.argument, error.expected, error.got) == (
        "conflict",
        "reps",
        'requires `errors="bootstrap"`',
        None,
    )
    assert InvalidOption.conflict("--jobs", "has no effect with `rust`").told() == "`--jobs` has no effect with `rust`."


def test_what_cannot_be():
    error = InvalidDemonstrations.impossible("goal 'yard' cannot be reached from 'mill'", "trip 3", "Drop it.")
    assert str(error) == "goal 'yard' cannot be reached from 'mill' (first at trip 3). Drop it."
    assert error.told(FLAGS) == str(error)
    assert (error.form, error.argument, error.offender) == ("impossible", "", "trip 3")


FORMS = [
    InvalidOption("reps", "a number", "none", None, f"For example: {arg('reps', 2)}."),
    InvalidOption.conflict("reps", f"requires `{arg('errors', 'bootstrap')}`"),
    InvalidOption.impossible(f"nothing follows {arg('reps')}", "row 1", "Stop."),
    SolverFailed(f"no solution. Try {arg('l2', 1e-3)}."),
]


@pytest.mark.parametrize("error", FORMS, ids=["value", "conflict", "impossible", "message"])
def test_errors_keep_both_voices_when_they_travel(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert getattr(again, "form", None) == getattr(error, "form", None)
    assert (str(again), again.told(FLAGS)) == (str(error), error.told(FLAGS))
    assert speak(error.message, FLAGS) == error.told(FLAGS) != str(error)
    assert not set("".join(map(str, (error, error.args, vars(error).get("remedy"))))) & set(MARKS)


def test_arguments_can_be_told_under_the_names_of_a_caller():
    remedy = f"Or {arg('bad', 'drop')}, {either('x()', '--x')}."
    error = InvalidOption.conflict("start", f"requires {arg('end')}", remedy=remedy)
    other = error.renamed({"start": "from_node", "end": "to_node", "bad": "bad_trips"})
    assert str(other) == '`from_node` requires to_node=. Or bad_trips="drop", x().'
    flags = {"from_node": "--from-node", "to_node": "--to-node", "bad_trips": "--bad-trips"}
    assert other.told(flags) == "`--from-node` requires --to-node. Or --bad-trips drop, --x."
    assert type(other) is InvalidOption
