"""Where a panel is read: into memory, or counted where it is, files by DuckDB out of core, lazy frames by their engine.

What travels from there is small: how often each agent took each action in each state, where trajectories begin, and
the moves (s, a, s'). The counts are those of the same panel in memory, to the last one.
"""

from __future__ import annotations

from typing import Any

from revealed.checks import require_flag
from revealed.declared_order import declared_orders
from revealed.errors import InvalidDemonstrations, InvalidInput
from revealed.frames import as_narwhals, read_table, relation_of, under_names
from revealed.panels.clock import is_own
from revealed.panels.columns import Roles
from revealed.panels.groups import Counted
from revealed.panels.in_duckdb import count_relation
from revealed.panels.in_engine import count_lazy
from revealed.panels.memory import Panel, read_panel
from revealed.voices import either

MOST_STEPS = 5_000_000  # rows up to which the single decisions of a file or a local lazy frame are kept
LOCAL = ("polars", "duckdb")  # engines of lazy frames in this process; the others may be spread over machines


def read_frame(
    frame: Any, roles: Roles, states: Any, actions: Any, first_time: Any, keep_steps: bool | None
) -> Panel | Counted:
    """Single decisions, or counts of them; `Demonstrations.from_frame` explains the arguments."""
    if keep_steps is not None:
        require_flag("keep_steps", keep_steps)
    if keep_steps is False:
        _refuse_goals(roles)
    if states is None and roles.bins is None:
        states = declared_orders(frame, *filter(None, (roles.state, roles.next_state, roles.goal)))
    actions = declared_orders(frame, roles.action) if actions is None else actions
    found = _count_where_it_lives(frame, roles, states, actions, first_time, keep_steps)
    if found is not None:
        return found
    labels = [name for _, name in roles.of_labels]
    table = read_table(frame, "frame", InvalidDemonstrations, roles.require, labels)
    return read_panel(table, roles, states, actions, first_time)


def _count_where_it_lives(
    frame: Any, roles: Roles, states: Any, actions: Any, first_time: Any, keep_steps: bool | None
) -> Counted | None:
    """The counts, or None where the frame is better read into memory: it is there already, or it is small."""
    if keep_steps is True:
        return None
    stored = relation_of(frame)
    if stored is not None:
        roles.require(stored.columns)
        if keep_steps is None and stored.n_rows <= MOST_STEPS:
            return None
        _require_countable(roles, first_time)
        return count_relation(stored, roles, states, actions)
    table = as_narwhals(frame)
    if not hasattr(table, "collect"):
        return None
    return _count_lazy(table, roles, states, actions, first_time, keep_steps)


def _count_lazy(
    table: Any, roles: Roles, states: Any, actions: Any, first_time: Any, keep_steps: bool | None
) -> Counted | None:
    import narwhals as nw

    table = under_names(table, roles.require(table.collect_schema().names()))
    engine = str(table.implementation).rpartition(".")[2].lower()
    if keep_steps is None and engine in LOCAL and table.select(nw.len()).collect().item() <= MOST_STEPS:
        return None
    _require_countable(roles, first_time)
    return count_lazy(table, roles, states, actions)


def _require_countable(roles: Roles, first_time: Any) -> None:
    """Counts have no time, hence no horizon to place them on, and no trips that go somewhere."""
    _refuse_goals(roles)
    if first_time is not None and not is_own(first_time):
        remedy = either("Pass keep_steps=True to read it into memory.", "Use a smaller panel.")
        rule = "requires individual decisions, but for a panel this large only counts are kept"
        raise InvalidInput.conflict("first_time", rule, remedy=remedy)


def _refuse_goals(roles: Roles) -> None:
    """Which goal a decision was made for is known only of individual decisions."""
    if roles.goal:
        remedy = either("Pass keep_steps=True to read it into memory, or use", "Use") + " part of the trips."
        rule = "requires individual decisions, but for a panel this large only counts are kept"
        raise InvalidInput.conflict("goal", rule, remedy=remedy)
