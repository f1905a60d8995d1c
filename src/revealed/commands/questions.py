"""What a saved fit is asked: which states, from where, and what changes; and the answers as tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import Floats, Ints, as_number, require_option
from revealed.commands.folder import occupied, write_frame, write_text
from revealed.commands.tables import Names, action_columns, action_labels, base_labels, state_columns
from revealed.counterfactual import Counterfactual
from revealed.errors import InvalidInput, InvalidOption
from revealed.files import prepare_folder
from revealed.fit import Fit
from revealed.frames import read_table
from revealed.labels import find, near, plain, spell
from revealed.mdp import MDP
from revealed.recipe import as_labels, read_model
from revealed.scenario import find_parameter

if TYPE_CHECKING:
    import pandas as pd

    from revealed.bins import Bins

BANDS = ("auto", "delta", "bootstrap", "none")
ANSWER = ("table.csv", "policy.csv", "states.csv", "counterfactual.html")


def find_states(
    fit: Fit, names: Names, labels: Sequence[str], file: str | os.PathLike[str] | None, period: int
) -> Ints:
    """The states asked for, in a period of the horizon; without any, all in which somebody decides."""
    S, last = (fit.mdp.base or fit.mdp).n_states, (fit.mdp.horizon or 1) - 1
    if period > last:
        raise InvalidOption("--period", f"a whole number in 0…{last}", repr(period))
    if labels and file is not None:
        raise InvalidOption("--states", "nothing beside --state", str(file))
    if not labels and file is None:
        return np.flatnonzero(~fit.mdp.terminal[period * S : (period + 1) * S]) + period * S
    base = _in_file(fit, names, file) if file is not None else _named(fit, "--state", labels)
    chosen = base + period * S
    ended = np.flatnonzero(fit.mdp.terminal[chosen])
    if ended.size:
        argument, where = ("--state", None) if file is None else ("--states", f"row {ended[0]}")
        label = spell(base_labels(fit)[int(base[ended[0]])])
        raise InvalidInput(argument, "states in which somebody decides", f"{label}, where everything ends", where)
    return chosen


def _named(fit: Fit, argument: str, labels: Sequence[str]) -> Ints:
    """States by label, or by raw values where the fit has bins."""
    known, bins = base_labels(fit), fit.demonstrations.bins
    if bins is None:
        return find(argument, as_labels(labels, known), known, argument)
    return np.array([_bin_of(bins, argument, label) for label in labels], dtype=np.intp)


def _bin_of(bins: Bins, argument: str, label: str) -> int:
    """A bin by its name, or by a number for each column, with commas between."""
    if label in bins.labels:
        return bins.labels.index(label)
    parts = [as_number(_float(part)) for part in label.split(",")]
    if len(parts) != len(bins.columns) or not np.isfinite(parts).all():
        expected = f"the name of a bin, or a number for {' and '.join(bins.columns)}"
        raise InvalidInput(argument, expected, repr(label), remedy=near(label, bins.labels))
    return int(bins.code(*parts)[0])


def _float(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return None


def _in_file(fit: Fit, names: Names, file: str | os.PathLike[str]) -> Ints:
    table, bins = read_table(file, "--states"), fit.demonstrations.bins
    if bins is not None:
        return bins.code(*(table.numbers("--states", name) for name in bins.columns))
    several = list(names.state) if isinstance(base_labels(fit)[0], tuple) else names.state[0]
    return find("--states", table.labels("--states", several), base_labels(fit), "row")


def choices_frame(fit: Fit, names: Names, states: Ints, deterministic: bool) -> pd.DataFrame:
    """A row per state: the probability of each action, or the most likely one and its probability."""
    import pandas as pd

    frame, policy = state_columns(fit, names, states), fit.policy[states]
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
    at = int(_named(fit, "--initial", [label])[0])
    return np.eye(1, fit.mdp.n_states, at).reshape(-1)


# counterfactuals


def ask(
    fit: Fit,
    names: Names,
    changes: Sequence[str],
    discount: float | None,
    transitions: str | os.PathLike[str] | None,
    bands: str,
    bootstrap: dict[str, int],
) -> Counterfactual:
    """The counterfactual in words of the command line."""
    require_option("--bands", bands, BANDS)
    if not changes and discount is None and transitions is None:
        remedy = "As in --set RC=12, --discount 0.9 or --transitions after.csv."
        raise InvalidOption("counterfactual", "something that changes", "nothing", remedy=remedy)
    rules = dict(parse_change(text, tuple(map(str, fit.reward_model.names))) for text in changes)
    model = _model(fit, names, discount, transitions)
    own = bands == "bootstrap" or (bands == "auto" and fit.errors[0] == "bootstrap")
    options = bootstrap if own and bands == "bootstrap" else {}
    return fit.counterfactual(params=rules or None, mdp=model, bands=None if bands == "none" else bands, **options)


def parse_change(text: str, names: tuple[str, ...]) -> tuple[str, float | Callable[[float], float]]:
    """`RC=12` sets a parameter; `price*1.2`, `price/2`, `price+1` and `price-1` change its estimate."""
    for name in sorted(names, key=len, reverse=True):  # a name may begin as another one does
        rest = text.strip().removeprefix(name).strip()
        if not text.strip().startswith(name) or rest[:1] not in _RULES:
            continue
        number = as_number(_float(rest[1:]))
        if np.isfinite(number) and not (rest[0] == "/" and number == 0.0):
            return name, _RULES[rest[0]](number)
        raise InvalidOption("--set", "a number after the sign, as in RC=12 or price*1.2", repr(text))
    known = text.strip()
    for sign in "=*/+-":
        known = known.partition(sign)[0].strip() or known
    if known in names:
        raise InvalidOption("--set", "what it becomes, as in RC=12 or price*1.2", repr(text))
    find_parameter(known, names, "--set")  # raises, with the nearest name
    raise InvalidOption("--set", "a parameter and what it becomes, as in RC=12", repr(text))


_RULES: dict[str, Callable[[float], float | Callable[[float], float]]] = {
    "=": lambda number: number,
    "*": lambda number: lambda value: value * number,
    "/": lambda number: lambda value: value / number,
    "+": lambda number: lambda value: value + number,
    "-": lambda number: lambda value: value - number,
}


def _model(fit: Fit, names: Names, discount: float | None, table: Any) -> MDP | None:
    """Another world, where something of it changes."""
    gamma = fit.mdp.discount if discount is None else discount
    if table is None:
        return None if discount is None else fit.mdp.replace(discount=gamma)
    own = fit.mdp.base or fit.mdp
    states, actions = [plain(label) for label in base_labels(fit)], [plain(label) for label in action_labels(fit)]
    state = list(names.state) if isinstance(states[0], tuple) else names.state[0]
    action = list(names.action) if isinstance(actions[0], tuple) else names.action[0]
    model = read_model(
        table,
        state=state,
        action=action,
        next_state=names.next_state,
        probability=names.probability,
        discount=gamma,
        states=states,
        actions=actions,
        initial=own.initial,
    )
    return model if fit.mdp.horizon is None else model.unroll(fit.mdp.horizon)


def claim_answer(out: str | os.PathLike[str], force: bool) -> Path:
    """The folder of an answer; one that holds other things is refused."""
    folder = Path(out)
    if folder.is_dir() and not force and any(file.name not in ANSWER for file in folder.iterdir()):
        raise occupied(folder)
    return prepare_folder(folder, "--out")


def write_answer(answer: Counterfactual, fit: Fit, names: Names, folder: Path) -> dict[str, str]:
    import pandas as pd

    states = np.arange(fit.mdp.n_states)
    own = state_columns(fit, names, states)
    parts = []
    for a in range(fit.mdp.n_actions):
        numbers = answer.frame("policy", a).reset_index(drop=True)
        both = pd.concat([own, action_columns(fit, names, np.full(states.size, a)), numbers], axis=1)
        parts.append(both[fit.mdp.feasible[:, a] | answer.after.mdp.feasible[:, a]])
    write_frame(folder / "table.csv", _table(answer))
    write_frame(folder / "policy.csv", pd.concat(parts).sort_index(kind="stable"))
    write_frame(folder / "states.csv", pd.concat([own, answer.frame("value").reset_index(drop=True)], axis=1))
    write_text(folder / "counterfactual.html", _page(answer))
    return {Path(name).stem: str(folder / name) for name in ANSWER}


def _table(answer: Counterfactual) -> pd.DataFrame:
    return answer.table().rename_axis("quantity").reset_index()


def describe_answer(answer: Counterfactual) -> dict[str, Any]:
    """A counterfactual for programs."""
    return {
        "change": answer.words,
        "bands": answer.bands,
        "level": answer.level,
        "table": _table(answer).to_dict("records"),
        "notes": list(answer.notes),
    }


def _page(answer: Counterfactual) -> str:
    from matplotlib.figure import Figure

    from revealed.errors import RevealedError
    from revealed.files import render_png
    from revealed.page import Html, contents, document, figure, join, paragraph, section, tag

    parts = [section("Shares and welfare", Html(answer.to_html()), id="table")]
    try:
        drawn: Figure = answer.plot()
        words = "Choice probabilities before and after, with bands"
        picture = figure(render_png(drawn), float(drawn.get_size_inches()[0]), words, words, "policy.csv")
    except RevealedError as error:
        picture = paragraph(f"No picture: {error}")
    parts.append(section("Choices", picture, id="choices"))
    title = f"Counterfactual: {answer.words}"
    nav = contents({"table": "Shares and welfare", "choices": "Choices"})
    return document(title, tag("h1", title), nav, join(parts, "\n"))
