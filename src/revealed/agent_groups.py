"""Groups of agents with correlated decisions (villages, depots): what clustered errors and bootstraps count as one.

Agents are the finest units: one cannot cluster by a column that changes within an agent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed.checks import Floats, Ints, as_list
from revealed.errors import InvalidOption
from revealed.gates import is_hashable
from revealed.labels import how_many, is_missing, listed, near, plain, require_ids, spell
from revealed.naming import rows_of
from revealed.voices import either, shown

FEW = 20  # groups below which sandwich errors are known to come out too small


@dataclass(frozen=True, eq=False)
class AgentGroups:
    """`code` (N,) is the group of each agent, `labels` (G,) are what the groups are called, and `by` what they are."""

    by: str
    code: Ints = field(repr=False)
    labels: tuple[Any, ...] = field(repr=False)

    @property
    def n(self) -> int:
        return len(self.labels)

    @property
    def key(self) -> str:
        """The same for the same grouping, whatever it is called."""
        return sha256(np.asarray(self.code, dtype=np.int64).tobytes()).hexdigest()[:16]

    @property
    def members(self) -> sp.csr_array:
        """Sparse (G, N): which agents are in each group."""
        N = len(self.code)
        return sp.csr_array((np.ones(N), (self.code, np.arange(N))), shape=(self.n, N))

    def sums(self, table: Floats) -> Floats:
        """(G, K): rows of agents (N, K) added up by group."""
        return np.asarray(self.members @ table)

    def spread(self, weights: Floats) -> Floats:
        """(N,): each agent counts as often as its group (G,)."""
        return weights[self.code]


def group_agents(demos: Any, by: Any) -> AgentGroups:
    """Groups by the name of a column that was kept, by a dict or Series from ids, or by one value per agent."""
    name, values = _values_of(demos, by)
    place: dict[str, int] = {}
    code = np.array([place.setdefault(spell(value), len(place)) for value in values], dtype=np.intp)
    labels = tuple(values[int(k)] for k in np.unique(code, return_index=True)[1])
    if len(labels) < 2:
        raise InvalidOption("by", "at least two groups of agents", f"{len(labels)} ({listed(labels)})")
    return AgentGroups(name, code, labels)


def _values_of(demos: Any, by: Any) -> tuple[str, Sequence[Any]]:
    if isinstance(by, str):
        return by, _kept(demos, by)
    if callable(getattr(by, "items", None)):  # a dict, or a Series of pandas
        name = getattr(by, "name", None)
        _require_index_of_ids(by, demos.ids)
        return "group" if name is None else str(name), _by_id(demos.ids, by.items())
    values = as_list(by)
    if values is None or len(values) != demos.n_agents:
        got = shown(by) if values is None else f"{len(values)} values"
        expected = f"the name of a column, a dict or Series from ids, or {demos.n_agents} values, one per agent"
        raise InvalidOption("by", expected, got, remedy=_KEEP)
    require_ids("by", demos.ids, InvalidOption)
    return "group", [_present(value, demos.ids[i]) for i, value in enumerate(values)]


def _kept(demos: Any, name: str) -> Sequence[Any]:
    known = demos.columns
    if name not in known:
        kept = f"only {listed(list(known))}" if known else "no columns were kept"
        what = f"the demonstrations have no column {name!r} ({kept})"
        raise InvalidOption.impossible(what, None, near(name, list(known)) or _KEEP, "by")
    return known[name]


def _require_index_of_ids(by: Any, ids: Sequence[Any]) -> None:
    """An index that was never set to ids counts the rows of a panel: its numbers are no ids, even if some agree."""
    index = rows_of(by)
    if index is None or any(name is not None for name in index.names):
        return
    known = {spell(one) for one in ids}
    other = next((one for one in index if spell(one) not in known), None)
    if other is not None:
        got = f"{len(index)} values for {how_many(len(ids), 'agent')}"
        remedy = f"{_KEEP} A Series needs the ids as its index."
        raise InvalidOption("by", "a Series whose index holds the ids of agents", got, f"{plain(other)!r}", remedy)


def _by_id(ids: Sequence[Any], groups: Iterable[tuple[Any, Any]]) -> list[Any]:
    by_text: dict[str, Any] = {}
    for one, group in groups:
        known = by_text.setdefault(spell(one), group)
        if known is not group and spell(known) != spell(group):
            got = f"{plain(known)!r} and {plain(group)!r}"
            remedy = "Use a column that is constant within each id, or a finer id."
            raise InvalidOption("by", "one group per id", got, f"id {plain(one)!r}", remedy)
    lost = [one for one in ids if spell(one) not in by_text]
    if lost:
        got = f"none for {len(lost)} of {len(ids)}"
        raise InvalidOption("by", "a group for every agent's id", got, f"id {plain(lost[0])!r}")
    return [_present(by_text[spell(one)], one) for one in ids]


def _present(value: Any, one: Any) -> Any:
    """A group that can be told from others."""
    group = plain(value)
    if not is_hashable(group) or is_missing(group):
        raise InvalidOption(
            "by", "groups that are text or numbers, without missing values", shown(group), f"id {one!r}"
        )
    return group


_KEEP = either("Keep columns with keep=[...] in from_frame or network.trips.", "Name a column of PANEL with --cluster.")
