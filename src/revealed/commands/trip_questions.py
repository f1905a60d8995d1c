"""What a saved fit of trips with goals is asked: choices toward a goal, trips between two places, and what changes."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import Bools, Floats, Ints
from revealed.commands.placing import write_frame, write_text
from revealed.commands.questions import (
    Changes,
    answer_table,
    changed_model,
    choices_frame,
    find_states,
    make_drawable,
    named_states,
    parse_changes,
)
from revealed.commands.tables import Names, state_columns
from revealed.commands.trip_tables import arrivals, ends_frame, place_names
from revealed.demonstrations import Demonstrations
from revealed.errors import InvalidInput, InvalidOption
from revealed.goal_checks import have_ways
from revealed.goal_fit import GoalFit
from revealed.labels import in_short, spell
from revealed.mdp import MDP
from revealed.positions import labelled
from revealed.rewards.feature_table import column_of, with_entries
from revealed.rewards.linear import LinearReward
from revealed.scenario import CHANGED_MOVES, as_setting
from revealed.trip_simulation import draw_weighted, trip_weights

if TYPE_CHECKING:
    import pandas as pd

TRIP_ANSWER = ("table.csv", "flows.csv", "welfare.csv", "counterfactual.html")


def require_goals(fit: Any, **given: Any) -> None:
    """Flags that only trips with goals understand."""
    for name, value in given.items():
        if value not in (None, ()) and not isinstance(fit, GoalFit):
            raise InvalidOption.conflict(f"--{name}", "requires a fit of trips with goals")


def toward_frame(
    fit: GoalFit, names: Names, goal: str | None, labels: Sequence[str], file: Any, period: int, deterministic: bool
) -> pd.DataFrame:
    """Choices on the way to a goal: a row per state or, where actions are told by where they lead, per move."""
    if goal is None:
        remedy = f"For example: --goal {spell(fit.goals[0])}."
        raise InvalidOption.conflict("--goal", "is required: choices depend on the destination", remedy=remedy)
    names = place_names(names)
    (g,) = named_states(fit, "--goal", [goal])
    policy = fit.policy_for(fit.state_labels[g])
    states = _on_the_way(fit, policy, find_states(fit, names, labels, file, period), bool(labels or file), goal)
    if fit.mdp.action_labels is not None or not fit.mdp.certain:
        return choices_frame(fit, names, states, deterministic, policy)
    return _moves_frame(fit, names, states, policy, deterministic)


def _on_the_way(fit: GoalFit, policy: Floats, states: Ints, asked: bool, goal: str) -> Ints:
    """The states in which something is chosen on the way to the goal; all of those that were asked for are."""
    decides = policy[states].sum(axis=1) > 0.0
    if asked and not decides.all():
        label = spell(fit.state_labels[int(states[np.flatnonzero(~decides)[0]])])
        raise InvalidInput.impossible(_why_no_choice(label, goal), argument="--state")
    return states[decides]


def _why_no_choice(label: str, goal: str) -> str:
    if label == goal:
        return f"no decision is made in {label}: it is the goal, where the trip ends"
    return f"goal {goal} cannot be reached from {label}"


def _moves_frame(fit: GoalFit, names: Names, states: Ints, policy: Floats, deterministic: bool) -> pd.DataFrame:
    import pandas as pd

    table = policy[states]
    if deterministic:
        row, action = np.arange(states.size), table.argmax(axis=1)
    else:
        row, action = np.nonzero(table > 0.0)
    here, there = states[row], fit.mdp.targets[states[row], action]
    after = state_columns(fit, names, there).add_prefix("next_")
    chance = pd.DataFrame({"probability": table[row, action]})
    return pd.concat([state_columns(fit, names, here), after, chance], axis=1)


def drawn_trips(
    fit: GoalFit, names: Names, n: int, length: int | None, seed: int, initial: str | None, goal: str | None
) -> Demonstrations:
    """`n` trips: between two places, of which one or both are drawn from those observed if they are not given."""
    if length is not None and names.on_roads:
        raise InvalidOption.conflict("--length", "has no effect on a road network: trips end at their last link")
    if initial is None and goal is None:
        return fit.simulate(n, seed=seed, longest=length)
    start, end = (
        None if label is None else int(named_states(fit, flag, [label])[0])
        for flag, label in (("--initial", initial), ("--goal", goal))
    )
    ends = [[fit.state_labels[int(s)] for s in states] for states in _ends(fit, n, seed, start, end)]
    return fit.simulate(origins=ends[0], destinations=ends[1], seed=seed, longest=length)


def _ends(fit: GoalFit, n: int, seed: int, start: int | None, end: int | None) -> tuple[Ints, Ints]:
    """Origins and goals of `n` trips. What is not given is drawn from what was observed beside the other or, where
    nobody was there, from all that was observed with a way between the two."""
    origins, goals = fit.demonstrations.origins, np.asarray(fit.demonstrations.destinations)
    often = trip_weights(fit.demonstrations)
    if start is not None and end is not None:
        return np.full(n, start), np.full(n, end)
    (own, other), given = ((goals, origins), end) if start is None else ((origins, goals), start)
    fixed = np.full(other.size, given)
    pool = np.flatnonzero((own == given) & (often > 0.0))
    if not pool.size:
        ways = have_ways(fit.mdp, *((other, fixed) if start is None else (fixed, other)))
        pool = np.flatnonzero(ways & (other != given) & (often > 0.0))
    if not pool.size:
        label = spell(fit.state_labels[int(fixed[0])])
        if start is None:
            raise InvalidInput.impossible(f"no observed origin leads to goal {label}", argument="--goal")
        raise InvalidInput.impossible(f"no observed goal can be reached from {label}", argument="--initial")
    drawn, fixed = other[pool][draw_weighted(often[pool], n, seed)], np.full(n, given)
    return (drawn, fixed) if start is None else (fixed, drawn)


# counterfactuals


def ask_trips(fit: GoalFit, names: Names, asked: Changes, bands: dict[str, Any]) -> Any:
    """The counterfactual of trips with goals."""
    _require_changes(asked, names)
    rules = parse_changes(asked.params, tuple(map(str, fit.reward_model.names)))
    model = changed_model(fit, names, asked)
    reward, words = None, []
    if asked.close:
        closed = named_states(fit, "--close", asked.close)
        model = without_states(fit.mdp if model is None else model, closed)
        words.append(f"{_listed(fit, closed)} closed")
    if asked.attributes:
        reward, told = _with_attributes(fit, asked)
        words.append(told)
    answer = fit.counterfactual(params=rules or None, mdp=model, reward=reward, **bands)
    return replace(answer, words=_told(fit, rules, asked, words)) if words else answer


def _require_changes(asked: Changes, names: Names) -> None:
    if asked.links and not asked.attributes:
        raise InvalidOption.conflict("--links", "requires `--attribute`")
    if not asked:
        remedy = "For example: --close LABEL, --set toll*2, or --attribute toll=2 --links LABEL."
        raise InvalidOption.conflict("counterfactual", "requires at least one change", remedy=remedy)
    if names.on_roads and asked.transitions is not None:
        raise InvalidOption.conflict("--transitions", "does not apply to a road network", remedy="Use --close.")


def _told(fit: GoalFit, rules: Any, asked: Changes, words: Sequence[str]) -> str:
    """What changed: parameters and discount in the library's words, the rest as it was typed."""
    said = as_setting(rules or None, tuple(map(str, fit.reward_model.names))).words(fit.theta)
    said += [] if asked.discount is None else [f"discount {fit.mdp.discount:g} → {asked.discount:g}"]
    said += [] if asked.transitions is None else [CHANGED_MOVES]
    return ", ".join([*said, *words])


def _listed(fit: GoalFit, states: Ints) -> str:
    return in_short([fit.state_labels[int(s)] for s in states])


def without_states(mdp: MDP, closed: Ints) -> MDP:
    """The model in which no action leads to these states any more; what begins there goes on from there."""
    shut = np.zeros(mdp.n_states)
    shut[closed] = 1.0
    feasible = mdp.feasible & ~(mdp.transitions.expect(shut) > 0.0)
    terminal = mdp.terminal | ~feasible.any(axis=1)
    return mdp.replace(feasible=labelled(feasible, mdp), terminal=labelled(terminal, mdp))


def _with_attributes(fit: GoalFit, asked: Changes) -> tuple[LinearReward, str]:
    """The reward with features changed, of what leads to some states or of everything, and that in words."""
    reward = fit.reward_model
    if not isinstance(reward, LinearReward):
        rule = f"requires a reward that is linear in attributes, not a {type(reward).__name__}"
        raise InvalidOption.conflict("--attribute", rule)
    rules = parse_changes(asked.attributes, tuple(map(str, reward.names)), "--attribute")
    rows, where = _rows_everywhere(fit, reward), ""
    if asked.links:
        chosen = named_states(fit, "--links", asked.links)
        rows, where = _rows_into(fit, reward, chosen), f" on {_listed(fit, chosen)}"
    if reward.n_columns > 1:
        rows &= fit.mdp.feasible.reshape(-1)
    other, some = copy(reward), np.flatnonzero(rows)
    for name, rule in rules.items():
        k = list(map(str, reward.names)).index(name)
        old: Any = column_of(reward.matrix, k)[some]
        other.matrix = with_entries(other.matrix, some, k, rule(old) if callable(rule) else rule)
    return other, f"{', '.join(asked.attributes)}{where}"


def _rows_everywhere(fit: GoalFit, reward: LinearReward) -> Bools:
    """All rows of features but those of arriving, which has no attributes."""
    if reward.n_columns == 1 or not fit.mdp.certain:
        return np.ones(reward.matrix.shape[0], dtype=bool)
    return ~arrivals(fit)[fit.mdp.targets].reshape(-1)


def _rows_into(fit: GoalFit, reward: LinearReward, states: Ints) -> Bools:
    """The rows of features that belong to these states: those of the moves that enter them, or their own."""
    if reward.n_columns == 1:
        return np.isin(np.arange(reward.n_states), states)
    if not fit.mdp.certain:
        raise InvalidOption.conflict("--links", "requires deterministic moves: here a move may lead to several states")
    return np.isin(fit.mdp.targets, states).reshape(-1)


def write_trip_answer(answer: Any, fit: GoalFit, names: Names, folder: Path, home: Path) -> dict[str, str]:
    """Tables and a page, into a folder whose files will be in `home`."""
    import pandas as pd

    names = place_names(names)
    own = state_columns(fit, names, np.arange(fit.mdp.n_states))
    ends = ends_frame(fit, names, answer.pairs.origin, answer.pairs.destination)
    write_frame(folder / "table.csv", answer_table(answer))
    write_frame(folder / "flows.csv", pd.concat([own, answer.frame("visits").reset_index(drop=True)], axis=1))
    write_frame(folder / "welfare.csv", pd.concat([ends, answer.frame("value").reset_index(drop=True)], axis=1))
    write_text(folder / "counterfactual.html", _page(answer))
    return {Path(name).stem: str(home / name) for name in TRIP_ANSWER}


def _page(answer: Any) -> str:
    from revealed.files import render_png
    from revealed.page import Html, contents, document, figure, join, section, tag

    drawn = answer.plot(title="")
    make_drawable(drawn)
    words = "The states whose use changes most: expected visits before and after, with bands"
    picture = figure(render_png(drawn), float(drawn.get_size_inches()[0]), words, words, "flows.csv")
    parts = [section("Per trip", Html(answer.to_html()), id="table"), section("Use", picture, id="use")]
    title = f"Counterfactual: {answer.words}"
    return document(title, tag("h1", title), contents({"table": "Per trip", "use": "Use"}), join(parts, "\n"))
