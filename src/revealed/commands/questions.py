"""What a saved fit is asked: which states, from where, and what changes; and the answers as tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import Floats, Ints, as_number
from revealed.commands.placing import write_frame, write_text
from revealed.commands.tables import Names, action_columns, action_labels, base_labels, state_columns
from revealed.commands.wording import in_flags
from revealed.counterfactual import Counterfactual
from revealed.errors import InvalidInput, InvalidOption
from revealed.fit import AnyFit, Fit
from revealed.frames import read_table
from revealed.labels import find, listed, near, plain, spell
from revealed.mdp import MDP
from revealed.positions import labelled
from revealed.typed import find_typed, read_model
from revealed.voices import shown

if TYPE_CHECKING:
    import pandas as pd

    from revealed.bins import Bins

ANSWER = ("table.csv", "policy.csv", "states.csv", "counterfactual.html")
MOST_PICTURES = 4


def find_states(
    fit: AnyFit, names: Names, labels: Sequence[str], file: str | os.PathLike[str] | None, period: int
) -> Ints:
    """The states asked for, in a period of the horizon; without any, all in which somebody decides."""
    S, last = (fit.mdp.base or fit.mdp).n_states, (fit.mdp.horizon or 1) - 1
    if period > last:
        if not fit.mdp.horizon:
            raise InvalidOption.conflict("--period", "requires a fit with --horizon")
        raise InvalidOption("--period", f"a whole number in 0…{last}", shown(period))
    if labels and file is not None:
        raise InvalidOption.conflict("--states", "cannot be combined with `--state`", remedy="Give one of them.")
    if not labels and file is None:
        return np.flatnonzero(~fit.mdp.terminal[period * S : (period + 1) * S]) + period * S
    base = _in_file(fit, names, file) if file is not None else named_states(fit, "--state", labels)
    chosen = base + period * S
    ended = np.flatnonzero(fit.mdp.terminal[chosen])
    if ended.size:
        argument, where = ("--state", None) if file is None else ("--states", f"row {ended[0]}")
        label = spell(base_labels(fit)[int(base[ended[0]])])
        raise InvalidInput.impossible(f"no decision is made in {label}, which is terminal", where, argument=argument)
    return chosen


def named_states(fit: AnyFit, argument: str, labels: Sequence[str]) -> Ints:
    """States by label, or by raw values where the fit has bins."""
    known, bins = base_labels(fit), fit.demonstrations.bins
    if bins is None:
        return find_typed(argument, labels, known)
    if len(bins.columns) == 1:  # commas are between numbers, not between the parts of one state
        labels = [part for label in labels for part in _numbers_in(label, bins)]
    return np.array([_bin_of(bins, argument, label) for label in labels], dtype=np.intp)


def _numbers_in(label: str, bins: Bins) -> list[str]:
    parts = label.split(",")
    return parts if label not in bins.labels and all(_float(part) is not None for part in parts) else [label]


def _bin_of(bins: Bins, argument: str, label: str) -> int:
    """A bin by its name, or by a number for each column, with commas between."""
    if label in bins.labels:
        return bins.labels.index(label)
    parts = [as_number(_float(part)) for part in label.split(",")]
    if len(parts) != len(bins.columns) or not np.isfinite(parts).all():
        expected = f"the name of a bin, or a number for {' and '.join(bins.columns)}"
        raise InvalidInput(argument, expected, shown(label), remedy=near(label, bins.labels))
    return int(_codes(bins, argument, *parts)[0])


def _codes(bins: Bins, argument: str, *values: Any) -> Ints:
    """The bins of raw values; one outside is told of the option that it came from."""
    try:
        return bins.code(*values)
    except InvalidInput as error:
        where = error.offender if argument == "--states" else None
        raise InvalidInput(argument, f"{error.expected} of {error.argument}", error.got, where) from error


def _float(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return None


def _in_file(fit: AnyFit, names: Names, file: str | os.PathLike[str]) -> Ints:
    table, bins = read_table(file, "--states"), fit.demonstrations.bins
    if bins is not None:
        return _codes(bins, "--states", *(table.numbers("--states", name) for name in bins.columns))
    several = list(names.state) if isinstance(base_labels(fit)[0], tuple) else names.state[0]
    return find("--states", table.labels("--states", several), base_labels(fit), "row")


def choices_frame(
    fit: Any, names: Names, states: Ints, deterministic: bool, policy: Floats | None = None
) -> pd.DataFrame:
    """A row per state: the probability of each action, or the most likely one and its probability. The policy (S, A) is
    the fit's own unless given."""
    import pandas as pd

    frame = state_columns(fit, names, states)
    policy = np.asarray(fit.policy if policy is None else policy)[states]
    if deterministic:
        best = policy.argmax(axis=1)
        chosen = action_columns(fit, names, best)
        taken = {name: f"{name}_" for name in chosen if name in frame}
        more = pd.DataFrame({"probability": policy[np.arange(states.size), best]})
        return pd.concat([frame, chosen.rename(columns=taken), more], axis=1)
    heads = [spell(label) for label in action_labels(fit)]
    heads = [f"{head}_" if head in frame else head for head in heads]
    return pd.concat([frame, pd.DataFrame(policy, columns=heads)], axis=1)


def start_at(fit: Fit, label: str) -> Floats:
    """All agents in one state; on a horizon in its first period."""
    at = int(named_states(fit, "--initial", [label])[0])
    return labelled(np.eye(1, fit.mdp.n_states, at).reshape(-1), fit.mdp)


# counterfactuals


@dataclass(frozen=True)
class Changes:
    """What changes, in words of the command line; `close`, `attributes` and `links` where trips have goals."""

    params: Sequence[str] = ()
    discount: float | None = None
    transitions: str | os.PathLike[str] | None = None
    probability: str | None = None
    close: Sequence[str] = ()
    attributes: Sequence[str] = ()
    links: Sequence[str] = ()

    def __bool__(self) -> bool:
        world = (self.discount, self.transitions, self.probability) != (None, None, None)
        return bool(self.params or self.close or self.attributes) or world


def ask(fit: Fit, names: Names, asked: Changes, bands: dict[str, Any]) -> Counterfactual:
    """The counterfactual in words of the command line."""
    if not asked:
        remedy = "For example: --set RC=12, --discount 0.9 or --transitions after.csv."
        raise InvalidOption.conflict("counterfactual", "requires at least one change", remedy=remedy)
    rules = parse_changes(asked.params, tuple(map(str, fit.reward_model.names)))
    model = changed_model(fit, names, asked)
    return fit.counterfactual(params=rules or None, mdp=model, **bands)


def band_options(bands: str, **bootstrap: int | None) -> dict[str, Any]:
    """Arguments of `fit.counterfactual`; draws are for bands that are asked to be of a bootstrap."""
    given = {name: value for name, value in bootstrap.items() if value is not None}
    if given and bands != "bootstrap":
        raise InvalidOption.conflict(f"--{next(iter(given))}", "requires `--bands bootstrap`")
    return {"bands": None if bands == "none" else bands} | given


Rule = float | Callable[[float], float]


def parse_changes(texts: Sequence[str], names: tuple[str, ...], flag: str = "--set") -> dict[str, Rule]:
    """Every change by its parameter, which has one; `a=1,b=2` are two."""
    rules: dict[str, Rule] = {}
    for text in texts:
        for name, rule in _changes_in(text, names, flag):
            if name in rules:
                raise InvalidOption(flag, "one change per parameter", f"{name!r} twice")
            rules[name] = rule
    return rules


def _changes_in(text: str, names: tuple[str, ...], flag: str) -> list[tuple[str, Rule]]:
    try:
        return [parse_change(text, names, flag)]
    except InvalidInput:
        try:
            several = [parse_change(part, names, flag) for part in text.split(",")] if "," in text else []
        except InvalidInput:
            several = []
        if several:
            return several
        raise


def parse_change(text: str, names: tuple[str, ...], flag: str = "--set") -> tuple[str, Rule]:
    """`RC=12` sets a parameter; `price*1.2`, `price/2`, `price+1` and `price-1` change its estimate."""
    for name in sorted(names, key=len, reverse=True):  # a name may begin as another one does
        rest = text.strip().removeprefix(name).strip()
        if not text.strip().startswith(name) or rest[:1] not in _RULES:
            continue
        number = as_number(_float(rest[1:]))
        if np.isfinite(number) and not (rest[0] == "/" and number == 0.0):
            return name, _RULES[rest[0]](number)
        raise InvalidOption(flag, f"a number after the operator, {_as_in(name)}", shown(text))
    raise _not_a_change(text, names, flag)


def _not_a_change(text: str, names: tuple[str, ...], flag: str) -> InvalidOption:
    """A known name without its new value, or one that is not known."""
    what = "a feature" if flag == "--attribute" else "a parameter"
    known = text.strip()
    for sign in "=*/+-":
        known = known.partition(sign)[0].strip() or known
    if known in names:
        return InvalidOption(flag, f"{what} and its new value, {_as_in(known)}", shown(text))
    expected = f"one of {listed(names)}, with its new value, {_as_in(names[0])}"
    return InvalidOption(flag, expected, shown(known or text), remedy=near(known, names))


def _as_in(name: str) -> str:
    """How a change is written, shown on a name that there is."""
    return f"as in {name}=12 or {name}*1.2"


_RULES: dict[str, Callable[[float], Rule]] = {
    "=": lambda number: number,
    "*": lambda number: lambda value: value * number,
    "/": lambda number: lambda value: value / number,
    "+": lambda number: lambda value: value + number,
    "-": lambda number: lambda value: value - number,
}


def changed_model(fit: AnyFit, names: Names, asked: Changes) -> MDP | None:
    """Another world, where something of it changes."""
    gamma = fit.mdp.discount if asked.discount is None else asked.discount
    if asked.probability is not None and asked.transitions is None:
        raise InvalidOption.conflict("--probability", "requires `--transitions`")
    if asked.transitions is None:
        return None if asked.discount is None else fit.mdp.replace(discount=gamma)
    own = fit.mdp.base or fit.mdp
    states, actions = [plain(label) for label in base_labels(fit)], [plain(label) for label in action_labels(fit)]
    state = list(names.state) if isinstance(states[0], tuple) else names.state[0]
    action = list(names.action) if isinstance(actions[0], tuple) else names.action[0]
    model = read_model(
        asked.transitions,
        state=state,
        action=action,
        next_state=names.next_state,
        probability=asked.probability or names.probability,
        discount=gamma,
        states=states,
        actions=actions,
        initial=own.initial,
    )
    return model if fit.mdp.horizon is None else model.unroll(fit.mdp.horizon)


def write_answer(answer: Counterfactual, fit: Fit, names: Names, folder: Path, home: Path) -> dict[str, str]:
    """Tables and a page, into a folder whose files will be in `home`."""
    import pandas as pd

    states = np.arange(fit.mdp.n_states)
    own = state_columns(fit, names, states)
    parts = []
    for a in range(fit.mdp.n_actions):
        numbers = answer.frame("policy", fit.action_labels[a]).reset_index(drop=True)
        both = pd.concat([own, action_columns(fit, names, np.full(states.size, a)), numbers], axis=1)
        parts.append(both[fit.mdp.feasible[:, a] | answer.after.mdp.feasible[:, a]])
    write_frame(folder / "table.csv", answer_table(answer))
    write_frame(folder / "policy.csv", pd.concat(parts).sort_index(kind="stable"))
    write_frame(folder / "states.csv", pd.concat([own, answer.frame("value").reset_index(drop=True)], axis=1))
    write_text(folder / "counterfactual.html", _page(answer))
    return {Path(name).stem: str(home / name) for name in ANSWER}


def answer_table(answer: Any) -> pd.DataFrame:
    return answer.table().rename_axis("quantity").reset_index()


def describe_answer(answer: Any) -> dict[str, Any]:
    """A counterfactual for programs."""
    return {
        "change": answer.words,
        "bands": answer.bands,
        "level": answer.level,
        "table": answer_table(answer).to_dict("records"),
        "notes": [in_flags(note) for note in answer.notes],
    }


def _page(answer: Counterfactual) -> str:
    from revealed.errors import RevealedError
    from revealed.page import Html, contents, document, join, paragraph, section, tag

    parts = [section("Shares and welfare", Html(answer.to_html()), id="table")]
    try:
        pictures = _pictures(answer)
    except RevealedError as error:
        pictures = [paragraph(f"No picture: {error}")]
    parts.append(section("Choices", *pictures, id="choices"))
    title = f"Counterfactual: {answer.words}"
    nav = contents({"table": "Shares and welfare", "choices": "Choices"})
    return document(title, tag("h1", title), nav, join(parts, "\n"))


def _pictures(answer: Counterfactual) -> list[Any]:
    """One for each action; of many, for those whose shares change most, which is said."""
    from revealed.files import render_png
    from revealed.page import figure, paragraph

    mdp = answer.after.mdp
    moved = np.abs(np.nan_to_num(np.asarray(answer.change.frequencies)))
    shown = np.sort(np.argsort(-moved, kind="stable")[:MOST_PICTURES])
    out: list[Any] = []
    if shown.size < mdp.n_actions:
        told = f"{shown.size} of {mdp.n_actions} actions, those whose shares change most; policy.csv has all."
        out.append(paragraph(told))
    for a in shown:
        drawn = answer.plot(action=mdp.action_labels[a] if mdp.action_labels else int(a), title="")
        make_drawable(drawn)
        label = spell(mdp.action_labels[a]) if mdp.action_labels else f"action {a}"
        words = f"Probability of {label} by state, before and after, with bands"
        out.append(figure(render_png(drawn), float(drawn.get_size_inches()[0]), words, words, "policy.csv"))
    return out


def make_drawable(drawn: Any) -> None:
    """Names that came with the data in signs that the font has; the tables have them in full."""
    from matplotlib.ticker import FixedLocator

    from revealed.fit_report.figures import drawable

    for ax in drawn.axes:
        for axis in (ax.xaxis, ax.yaxis):
            axis.label.set_text(drawable(axis.label.get_text(), 60))
            axis.label.set_parse_math(False)
            if isinstance(axis.get_major_locator(), FixedLocator):
                axis.set_ticklabels([drawable(tick.get_text()) for tick in axis.get_ticklabels()])
                for tick in axis.get_ticklabels():
                    tick.set_parse_math(False)
