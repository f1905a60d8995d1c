"""Demonstrations against a model: labels matched by name, decisions feasible, moves possible."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed.checks import Ints
from revealed.demonstrations import Demonstrations
from revealed.errors import InvalidDemonstrations, InvalidInput
from revealed.goal_checks import require_goals_within, require_named_goals, require_ways
from revealed.goal_steps import first_met, whose
from revealed.labels import are_positions, find, holds_numbers, require_declared
from revealed.mdp import MDP
from revealed.naming import in_words, pair_in_words, state_in_words
from revealed.positions import same_labels
from revealed.tables import sparse_table
from revealed.voices import either


def match_labels(demos: Demonstrations, mdp: MDP) -> Demonstrations:
    """The same decisions in the order of the MDP's labels, where both have labels; an unknown one is an error. Where
    one of them knows positions alone, the other's order must have been declared."""
    model = mdp if mdp.base is None or demos.n_states == mdp.n_states else mdp.base
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
        state_labels=model.state_labels if _named("state", demos) else None,
        action_labels=model.action_labels if _named("action", demos) else None,
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
        "have the states in another order than the model and no action labels, and where an action led does not tell "
        "which of the model's actions it is"
    )
    remedy = "List the states where the data are read, in the model's order, or give the actions labels in both."
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
    if own is None or known is None:
        _require_declared(role, own, known)
        return None, max(n, most)
    if same_labels(own, known):
        return None, max(n, most)
    return find(f"{role}_labels", own, known, what=f"{role} label", error=InvalidDemonstrations), max(n, most)


def _named(role: str, demos: Demonstrations) -> bool:
    return getattr(demos, f"{role}_labels") is not None or role in demos.numbered


def _names(role: str, numbered: Demonstrations | MDP, others: Any) -> bool:
    """Whether the whole numbers of a table are labels: those of the other side are numbers, and not just 0, 1, 2, …"""
    return role in numbered.numbered and others is not None and holds_numbers(others) and not are_positions(others)


def _numbers_matched(role: str, demos: Demonstrations, known: Any) -> Ints:
    """Where the whole numbers of a column stand among the labels; those that no row has stand nowhere."""
    seen = demos.counts.sum(axis=1 if role == "state" else 0) > 0.0
    if role == "state":
        seen = seen | (demos.starts > 0.0)
        seen[demos.transition_counts.tocoo().coords[1]] = True
        if demos.goal_states is not None:
            seen[demos.goal_states] = True
    met = np.flatnonzero(seen)
    place = np.zeros(seen.size, dtype=np.intp)
    place[met] = find(role, met.tolist(), known, what=role, error=InvalidDemonstrations)
    return place


def _require_declared(role: str, own: Any, model: Any) -> None:
    """Positions on one side need an order on the other that somebody declared."""
    by_position = f"an MDP with {role}s by position (0, 1, 2, …)"
    instead = f"give the model labels, {role}_labels=[...] in its order"
    require_declared("mdp", role, own, by_position, InvalidDemonstrations, instead=instead)
    by_position = f"decisions with {role}s by position (0, 1, 2, …)"
    require_declared("demonstrations", role, model, by_position, InvalidDemonstrations)


def decisions_on(demos: Demonstrations, mdp: MDP) -> Demonstrations:
    """The same decisions as those of another model, in its order where all of their labels are known there; else as
    they are."""
    try:
        return match_labels(demos, mdp)
    except InvalidInput:
        return demos


def name_alike(mdp: MDP, named: Demonstrations | MDP) -> MDP:
    """The model with the labels of decisions, or of a model, that it shares states and actions with, where it has none
    of its own."""
    model = mdp.base or mdp
    states = named.state_labels if named.n_states == model.n_states and model.state_labels is None else None
    actions = named.action_labels if named.n_actions == model.n_actions and model.action_labels is None else None
    return mdp if states is None and actions is None else mdp.with_labels(states, actions)


def require_fit(mdp: MDP, demos: Demonstrations) -> None:
    """The decisions are decisions of this MDP: same sizes, no infeasible action, none in a terminal state.

    Trips with goals can reach them from wherever they were seen, and do not turn to where they cannot.
    """
    require_goals_within(mdp, demos)
    if demos.counts.shape != mdp.feasible.shape:
        raise InvalidDemonstrations(
            "demonstrations",
            f"{mdp.n_states} states and {mdp.n_actions} actions, as the MDP has",
            f"{demos.n_states} and {demos.n_actions}",
            remedy="Indices start at 0. Where the data do not show everything, "
            + either("pass n_states= and n_actions=.", "list all of them in --features or --transitions."),
        )
    wrong = (demos.counts > 0) & ~mdp.feasible
    if wrong.any():
        mdp = name_alike(mdp, demos)
        s, a = (int(i) for i in np.argwhere(wrong)[0])
        raise InvalidDemonstrations(
            "demonstrations",
            "feasible actions in non-terminal states",
            f"{demos.counts[wrong].sum():g} decisions " + ("in terminal states" if mdp.terminal[s] else "infeasible"),
            pair_in_words(mdp, s, a) + _who(demos, s, a),
            "Drop those decisions, or change "
            + either("the MDP's feasible= or terminal=.", "--transitions or --terminal."),
        )
    if demos.goals is not None:
        require_ways(name_alike(mdp, demos), demos)


def impossible_moves(mdp: MDP, demos: Demonstrations) -> str | None:
    """What to say of moves that were seen although T gives them no chance; None where there are none."""
    possible = mdp.transitions.matrix.copy()
    possible.data = np.ones_like(possible.data)
    seen = demos.transition_counts
    wrong = sp.coo_array(seen - seen.multiply(possible))
    wrong.eliminate_zeros()
    if wrong.nnz == 0:
        return None
    mdp = name_alike(mdp, demos)
    s, a = divmod(int(wrong.coords[0][0]), mdp.n_actions)
    after = state_in_words(mdp, wrong.coords[1][0])
    first = f"from {state_in_words(mdp, s)} by {in_words('action', mdp.action_labels, a)} to {after}"
    return f"{wrong.sum():g} observed moves are impossible under the MDP's transitions (first {first})."


def _who(demos: Demonstrations, s: int, a: int) -> str:
    """Whose decision it was, where trajectories are known."""
    if demos.steps is None:
        return ""
    here = np.flatnonzero((demos.steps.state == s) & (demos.steps.action == a))
    return f", {whose(demos.steps, demos.ids, first_met(demos.steps, here))}"
