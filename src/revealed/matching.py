"""Demonstrations against a model: labels matched by name, decisions feasible, moves possible."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed.checks import Ints
from revealed.demonstrations import Demonstrations, numbered_from_one, were_seen
from revealed.errors import InvalidDemonstrations, InvalidInput
from revealed.goal_checks import require_goals_within, require_named_goals, require_ways
from revealed.goal_steps import first_met, whose
from revealed.labels import (
    Order,
    are_positions,
    columns_of,
    find,
    holds_numbers,
    is_derived,
    label_it,
    require_declared,
    sizes_in_words,
)
from revealed.mdp import MDP
from revealed.naming import in_words, pair_in_words, state_in_words
from revealed.positions import own_numbers, reordering, same_labels
from revealed.tables import sparse_table
from revealed.voices import either, named, words

MANY, FEW = 0.1, 10  # share of the observed moves, and number, from which impossible ones say that the model is another
CAUSES = (
    "Check that "
    + either(
        "the rows of the transitions are in the order s*A + a, that states and actions are",
        "--transitions belong to this panel, that labels of states and actions mean the same in both or are",
    )
    + f" in the order of the data, and that `{named('next_state')}` is the state that a decision led to."
)


def match_labels(demos: Demonstrations, mdp: MDP) -> Demonstrations:
    """The same decisions in the order of the MDP's labels, where both have labels; an unknown one is an error. Where
    one of them knows positions alone, the other's order must have been declared."""
    model = mdp if mdp.base is None or demos.n_states == mdp.n_states else mdp.base
    if model.state_labels is None and _swapped(model, demos):
        raise _wrong_sizes(model, demos)
    if model.state_labels is not None:
        require_named_goals(demos, model.state_labels)
    to_state, S = _matching("state", demos, model)
    to_action, A = _matching("action", demos, model)
    if to_state is None and to_action is None:
        return demos
    to_state = np.arange(demos.n_states) if to_state is None else to_state
    to_action = np.arange(demos.n_actions) if to_action is None else to_action
    pair = (to_state[:, None] * A + to_action).reshape(-1)
    steps = demos.steps
    if steps is not None:
        after = np.where(steps.next_state >= 0, to_state[steps.next_state], -1)
        goal = None if steps.goal is None else to_state[steps.goal]
        steps = replace(steps, state=to_state[steps.state], action=to_action[steps.action], next_state=after, goal=goal)
    agents, moves = demos.by_agent.tocoo(), demos.transition_counts.tocoo()
    starts = np.bincount(to_state, weights=demos.starts, minlength=S)
    own_starts = demos.starts_by_agent
    if own_starts is not None:
        began = own_starts.tocoo()
        own_starts = sparse_table(began.data, began.coords[0], to_state[began.coords[1]], (demos.n_agents, S))
    matched = replace(
        demos,
        n_states=S,
        n_actions=A,
        by_agent=sparse_table(agents.data, agents.coords[0], pair[agents.coords[1]], (demos.n_agents, S * A)),
        starts=starts,
        transition_counts=sparse_table(moves.data, pair[moves.coords[0]], to_state[moves.coords[1]], (S * A, S)),
        steps=steps,
        starts_by_agent=own_starts,
        state_labels=_matched_labels("state", demos, model),
        action_labels=_matched_labels("action", demos, model),
    )
    if demos.action_labels is not None:
        return matched
    return _by_where_they_lead(matched, model, _order(demos, model, to_state))


def _order(demos: Demonstrations, model: MDP, to_state: Ints) -> Ints:
    """(S,): where the model's states stand in the data's order; whole numbers that are labels stand in theirs."""
    if demos.state_labels is None:
        return np.argsort(np.argsort(np.asarray(model.state_labels, dtype=np.float64))).astype(np.intp)
    order = np.full(model.n_states, to_state.size)
    order[to_state] = np.arange(to_state.size)
    return order


def _by_where_they_lead(demos: Demonstrations, model: MDP, order: Ints) -> Demonstrations:
    """Actions without labels, as turns at the end of a link, are numbered in the order of the states that they lead to:
    in another order of the states a decision is the action that leads where it led."""
    if model.action_labels is not None or not model.certain or demos.n_actions != model.n_actions:
        return demos
    pair, led = _moves_seen(demos, model)
    action = _numbers_here(pair, led, model, order)
    if np.array_equal(action, pair % model.n_actions):
        return demos
    place = np.arange(demos.n_states * demos.n_actions)
    place[pair] += action - pair % model.n_actions
    agents, moves, steps = demos.by_agent.tocoo(), demos.transition_counts.tocoo(), demos.steps
    if steps is not None:
        steps = replace(steps, action=place[steps.state * demos.n_actions + steps.action] % demos.n_actions)
    return replace(
        demos,
        by_agent=sparse_table(agents.data, agents.coords[0], place[agents.coords[1]], agents.shape),
        transition_counts=sparse_table(moves.data, place[moves.coords[0]], moves.coords[1], moves.shape),
        steps=steps,
    )


def _moves_seen(demos: Demonstrations, model: MDP) -> tuple[Ints, Ints]:
    """Every pair that was seen in a state with actions, and where it led: once for each such state, −1 where none was
    seen that an action of the model leads to."""
    every, after = (place.astype(np.intp) for place in demos.transition_counts.tocoo().coords)
    leads = _leading(every, after, model).any(axis=1)
    pair, led = every[leads], after[leads]
    seen = np.append(demos.by_agent.tocoo().coords[1], every)
    others = np.setdiff1d(seen, pair).astype(np.intp)
    others = others[model.feasible[others // model.n_actions].any(axis=1)]
    return np.concatenate([pair, others]), np.concatenate([led, np.full(others.size, -1)])


def _leading(pair: Ints, led: Ints, model: MDP) -> Any:
    """(n, A): which actions of the pairs' states lead there."""
    state = pair // model.n_actions
    return model.feasible[state] & (model.targets[state] == led[:, None])


def _numbers_here(pair: Ints, led: Ints, model: MDP, order: Ints) -> Ints:
    """The model's numbers of the actions: those of the data, if they lead where they led; else those that the same
    moves have in the data's order of states, if these do; else of the only action that leads there."""
    state, ours = np.divmod(pair, model.n_actions)
    theirs = _in_order_of(order, model)[state, ours]
    leads = _leading(pair, led, model)
    fits = [bool((leads[np.arange(pair.size), number] | (led < 0)).all()) for number in (ours, theirs)]
    unclear = ours != theirs if all(fits) else np.zeros(pair.size, dtype=bool)
    if not any(fits):
        unclear = (leads.sum(axis=1) != 1) | (np.bincount(pair)[pair] > 1)
    if unclear.any():
        raise _unclear_action(model, int(pair[unclear][0]))
    return ours if fits[0] else theirs if fits[1] else leads.argmax(axis=1)


def _in_order_of(order: Ints, model: MDP) -> Ints:
    """(S, A): the actions of each state in the data's order of the states that they lead to, the feasible ones first;
    of several that lead to one state the first comes first."""
    last = order.max(initial=0) + 1
    return np.argsort(np.where(model.feasible, order[model.targets], last), axis=1, kind="stable")


def _unclear_action(model: MDP, pair: int) -> InvalidDemonstrations:
    s, a = divmod(pair, model.n_actions)
    rule = (
        "list the states in a different order from the model and have no action labels; the observed next state does "
        "not determine which of the model's actions was taken"
    )
    remedy = "List the states in the model's order when you read the data, or give the actions labels in both."
    return InvalidDemonstrations.conflict("demonstrations", rule, pair_in_words(model, s, a), remedy)


def _matching(role: str, demos: Demonstrations, model: MDP) -> tuple[Ints | None, int]:
    """Where each of our states or actions stands in the model, None where there is nothing to match; and how many there
    are then."""
    own, known = getattr(demos, f"{role}_labels"), getattr(model, f"{role}_labels")
    n, most = getattr(demos, f"n_{role}s"), getattr(model, f"n_{role}s")
    if own is None and _names(role, demos, known):
        return _numbers_matched(role, demos, known), most
    if known is None and _names(role, model, own):
        known = tuple(range(most))
    own, known = own or own_numbers(known), known or own_numbers(own)
    if own is None or known is None:
        if is_derived(own) and known is None and n > most:
            raise _wrong_sizes(model, demos)
        _require_declared(role, own, known)
        return None, max(n, most)
    if same_labels(own, known):
        return None, max(n, most)
    return find(f"{role}_labels", own, known, what=f"{role} label", error=InvalidDemonstrations), max(n, most)


def _matched_labels(role: str, demos: Demonstrations, model: MDP) -> Any:
    """The model's labels under the names of the data's columns; None where the data have no labels."""
    own, known = getattr(demos, f"{role}_labels"), getattr(model, f"{role}_labels")
    if own is None:
        return known if role in demos.numbered or own_numbers(known) else None
    if known is None or columns_of(known) or not columns_of(own):
        return known
    return Order(known, is_derived(known), columns_of(own))


def _names(role: str, numbered: Demonstrations | MDP, others: Any) -> bool:
    """Whether the whole numbers of a table are labels: those of the other side are numbers, and not just 0, 1, 2, …"""
    return role in numbered.numbered and others is not None and holds_numbers(others) and not are_positions(others)


def _numbers_matched(role: str, demos: Demonstrations, known: Any) -> Ints:
    """Where the whole numbers of a column stand among the labels; those that no row has stand nowhere."""
    seen = were_seen(demos, role)
    met = np.flatnonzero(seen)
    place = np.zeros(seen.size, dtype=np.intp)
    place[met] = find(role, met.tolist(), known, what=role, error=InvalidDemonstrations)
    return place


def _require_declared(role: str, own: Any, model: Any) -> None:
    """Positions on one side need an order on the other that somebody declared."""
    instead = label_it(role), f"read the decisions with labels of their {role}s"
    require_declared("mdp", role, own, f"an MDP without {role} labels", InvalidDemonstrations, instead=instead[0])
    got = f"decisions without {role} labels"
    require_declared("demonstrations", role, model, got, InvalidDemonstrations, instead=instead[1])


def decisions_on(demos: Demonstrations, mdp: MDP) -> Demonstrations:
    """The same decisions as those of another model, in its order where all of their labels are known there; else as
    they are."""
    try:
        return match_labels(demos, mdp)
    except InvalidInput:
        return demos


def name_alike(mdp: MDP, named: Demonstrations | MDP) -> MDP:
    """The model with the labels of decisions, or of a model, that it shares states and actions with, where it has none
    of its own; and with the names of the columns that the parts of labels stood in, where it has labels without."""
    model = mdp.base or mdp
    states = named.state_labels if named.n_states == model.n_states else None
    actions = named.action_labels if named.n_actions == model.n_actions else None
    states, actions = _more_names(model.state_labels, states), _more_names(model.action_labels, actions)
    return mdp if states is None and actions is None else mdp.with_labels(states, actions)


def _more_names(own: Any, others: Any) -> Any:
    """The labels of others where we have none; ours under the names of their columns where these are the same labels
    in whatever order; else None: nothing to add."""
    if own is None or columns_of(own) or not columns_of(others):
        return others if own is None and same_labels(own, others) else None
    if not same_labels(own, others) and reordering(others, own) is None:
        return None
    return Order(own, is_derived(own), columns_of(others))


def require_fit(mdp: MDP, demos: Demonstrations) -> None:
    """The decisions are decisions of this MDP, and trips with goals can reach them from wherever they were seen, and do
    not turn to where they cannot."""
    require_decisions(mdp, demos)
    if demos.goals is not None:
        require_ways(name_alike(mdp, demos), demos)


def require_estimable(mdp: MDP, demos: Demonstrations) -> str | None:
    """The same of a model to be estimated, whose moves are those that were seen; what to note of some that are not."""
    require_decisions(mdp, demos)
    told = impossible_moves(mdp, demos)
    require_fit(mdp, demos)
    return told


def require_decisions(mdp: MDP, demos: Demonstrations) -> None:
    """Same sizes, no infeasible action, no decision in a terminal state."""
    require_goals_within(mdp, demos)
    if demos.counts.shape != mdp.feasible.shape:
        raise _wrong_sizes(mdp, demos)
    wrong = (demos.counts > 0) & ~mdp.feasible
    if wrong.any():
        mdp = name_alike(mdp, demos)
        s, a = (int(i) for i in np.argwhere(wrong)[0])
        n = demos.counts[wrong].sum()
        many = "decision" if n == 1.0 else "decisions"
        raise InvalidDemonstrations(
            "demonstrations",
            "feasible actions in non-terminal states",
            f"{n:g} {many} in terminal states" if mdp.terminal[s] else f"{n:g} infeasible {many}",
            pair_in_words(mdp, s, a) + _who(demos, s, a),
            "Drop those decisions, or change "
            + either("the MDP's feasible= or terminal=.", "--transitions or --terminal."),
        )


def _swapped(mdp: MDP, demos: Demonstrations) -> bool:
    """Whether the data have too many actions, but would fit the model with states and actions exchanged."""
    return demos.n_states <= mdp.n_actions < demos.n_actions <= mdp.n_states


def _wrong_sizes(mdp: MDP, demos: Demonstrations) -> InvalidDemonstrations:
    remedy = numbered_from_one("state", demos) or numbered_from_one("action", demos) or "Indices start at 0."
    if demos.n_states < mdp.n_states or demos.n_actions < mdp.n_actions:
        remedy += " Where the data do not show everything, " + either(
            "pass n_states= and n_actions=.", "list all of them in --features or --transitions."
        )
    if _swapped(mdp, demos):
        remedy = f"Are `{named('state')}` and `{named('action')}` swapped?"
    expected = f"{sizes_in_words(mdp.n_states, mdp.n_actions)}, as the MDP has"
    got = sizes_in_words(demos.n_states, demos.n_actions)
    return InvalidDemonstrations("demonstrations", expected, got, remedy=remedy)


def impossible_moves(mdp: MDP, demos: Demonstrations) -> str | None:
    """What to say of moves that were seen although T gives them no chance; None where there are none. A model that
    contradicts a good part of the moves is not the one of the data, and is refused."""
    seen = demos.transition_counts
    wrong = _without_chance(seen, mdp.transitions.matrix)
    if wrong.nnz == 0:
        return None
    mdp = name_alike(mdp, demos)
    n, total = float(wrong.sum()), float(seen.sum())
    s, a = divmod(int(wrong.coords[0][0]), mdp.n_actions)
    act, after = in_words("action", mdp.action_labels, a), state_in_words(mdp, wrong.coords[1][0])
    what = f"{n:.12g} of {total:.12g} observed moves are impossible under the MDP's transitions"
    estimated = (mdp.base or mdp).estimated is not None  # where a zero says that a move was not seen there
    if n < MANY * total or max(n, wrong.nnz) < FEW or estimated:
        return words(f"{what} (first from {state_in_words(mdp, s)} by {act} to {after}). {CAUSES}")
    first = f"{state_in_words(mdp, s)}, {act}, next {after}"
    raise InvalidDemonstrations.impossible(what, first, _stacked(mdp, seen) or CAUSES, "demonstrations")


def _without_chance(seen: sp.csr_array, transitions: Any) -> sp.coo_array:
    """The moves that were seen, less those that T allows."""
    possible = transitions.copy()
    possible.data = (possible.data != 0.0).astype(np.float64)
    wrong = sp.coo_array(seen - seen.multiply(possible))
    wrong.eliminate_zeros()
    return wrong


def _stacked(mdp: MDP, seen: sp.csr_array) -> str | None:
    """The remedy where the moves are possible once the rows are read as a*S + s."""
    S, A = mdp.n_states, mdp.n_actions
    rows = np.arange(S * A).reshape(A, S).T.reshape(-1)
    if _without_chance(seen, mdp.transitions.matrix[rows]).nnz:
        return None
    return "All of them are possible if the rows of the transitions are stacked as a*S + s: stack them as s*A + a."


def _who(demos: Demonstrations, s: int, a: int) -> str:
    """Whose decision it was, where trajectories are known."""
    if demos.steps is None:
        return ""
    here = np.flatnonzero((demos.steps.state == s) & (demos.steps.action == a))
    return f", {whose(demos.steps, demos.ids, first_met(demos.steps, here))}"
