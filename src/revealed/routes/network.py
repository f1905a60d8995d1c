"""A road network as a model (theory M1 with γ = 1): states are links, actions are the turns at a link's end.

Moves are deterministic and nothing is discounted, so that all a network says is which turn leads from which link to
which, and what each turn is like. Turns are numbered as the model's feasible pairs are, by link and then by slot; a
network holds a few numbers per turn and nothing per pair of links.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from revealed.checks import Floats, Ints, as_list, frozen, require_flag
from revealed.demonstrations import Demonstrations
from revealed.errors import InvalidInput
from revealed.gates import require_place, require_places
from revealed.labels import find, how_many, listed, near, places_by_text, plain, spell
from revealed.mdp import MDP
from revealed.rewards.linear import LinearReward
from revealed.routes.link_tables import Columns, Links, Nodes, as_names, notes_on, read_links, read_places
from revealed.routes.network_checks import require_network
from revealed.routes.turn_features import BUILT_IN, make_features, make_reward
from revealed.routes.turns import Turns, join_links, read_turns, with_built_ins
from revealed.voices import either, shown

if TYPE_CHECKING:
    import pandas as pd

LEFT_TURN = (40.0, 170.0)  # degrees


_PLACED = "It requires coordinates of the nodes: " + either(
    "pass RoadNetwork.from_frame(nodes=...), a table with columns node, x and y, or columns of links: x_from=, "
    "y_from=, x_to= and y_to=.",
    "give --nodes, a file with columns node, x and y.",
)


@dataclass(frozen=True, eq=False, repr=False)
class RoadNetwork:
    """Links joined by turns. Build one with `from_frame`, `from_turns` or `from_networkx`.

    `links` (S,) are the labels of the links, by which they are named everywhere here and matched by their text. Turn
    k leads from link `source[k]` to link `target[k]` (indices, both (E,)) and is action `slot[k]` of the first.
    `coordinates` (S, 2, 2) are the points (x, y) where each link starts and ends, None where they are not known;
    `nodes` which nodes those are. `arrival` (S,) is the arrival link of each link, −1 where it has none. `notes` say
    what the tables held that is not used, `left_out` why, by column; `words` what was changed since.
    """

    links: tuple[Any, ...]
    source: Ints
    target: Ints
    slot: Ints
    n_slots: Ints  # (S,) how many actions belong to each link; of some the turn may be closed
    link_values: dict[str, Floats]
    turn_values: dict[str, Floats]
    nodes: Nodes | None
    coordinates: Floats | None
    arrival: Ints
    left_out: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = field(default=())
    words: str = field(default="")

    def __post_init__(self) -> None:
        require_network(self)

    @classmethod
    def from_frame(
        cls,
        links: Any,
        *,
        link: Columns = "link",
        start: Columns = "from",
        end: Columns = "to",
        turns: Any = None,
        turn_from: Columns = "from_link",
        turn_to: Columns = "to_link",
        u_turns: bool = True,
        attributes: Sequence[str] | None = None,
        nodes: Any = None,
        node: Columns = "node",
        x: str = "x",
        y: str = "y",
        x_from: str | None = None,
        y_from: str | None = None,
        x_to: str | None = None,
        y_to: str | None = None,
        left_turn: tuple[float, float] = LEFT_TURN,
    ) -> RoadNetwork:
        """From a table of links, a row each: any data frame, or the path of a CSV or Parquet file.

        Parameters
        ----------
        link, start, end : the columns of the link's id and of the nodes where it starts and ends. Ids are whole
            numbers or text; of several columns, as in `link=["from", "to"]`, they are tuples. Links between the same
            nodes are distinguished by their ids.
        turns : a table of the turns that are allowed, with columns `turn_from` and `turn_to`. Without it every pair
            of links that meet is one; a loop, which ends where it starts, does not follow itself.
        u_turns : False leaves out turns back to the node a link came from, except where there is no other way out.
        attributes : the columns that are attributes. By default every other column of numbers: those of the links
            describe the link that a turn enters, those of the turns the turn itself, which is used if both have it.
        nodes : a table of nodes with columns `node`, `x` and `y`. Coordinates may also stand in the table of links, in
            columns named by `x_from`, `y_from`, `x_to` and `y_to` (those of just these names are found).
        left_turn : from which angle to which a turn is one to the left, in degrees; x points east and y north.

        Besides, "constant" is 1 for every turn, "u_turn" marks turns back and, where there are coordinates,
        "left_turn" those to the left, while "length" is the straight distance; columns of these names come first.
        """
        require_flag("u_turns", u_turns)
        corners = (x_from, y_from, x_to, y_to)
        known = read_links(links, link, (start, end), corners, attributes)
        if nodes is not None and known.nodes is not None:
            known = replace(known, coordinates=read_places(nodes, node, x, y, known.nodes))
        joined = join_links(known, turns, turn_from, turn_to, u_turns, attributes)
        return cls._of(known, joined, attributes, left_turn)

    @classmethod
    def from_turns(
        cls,
        turns: Any,
        *,
        turn_from: Columns = "from_link",
        turn_to: Columns = "to_link",
        links: Any = None,
        link: Columns = "link",
        attributes: Sequence[str] | None = None,
    ) -> RoadNetwork:
        """From a table of turns from link to link alone, a row each; nodes are not needed.

        Columns of numbers are attributes, as in `from_frame`. `links` may be a table with more of them (attributes of
        the link that is entered), which also sets the order of the links; by default their ids are sorted.
        """
        known = None if links is None else read_links(links, link, None, (None,) * 4, attributes)
        joined, labels = read_turns(turns, turn_from, turn_to, known, attributes)
        return cls._of(known or Links(labels, {}), joined, attributes)

    @classmethod
    def from_networkx(
        cls,
        graph: Any,
        *,
        link: str | None = None,
        x: str = "x",
        y: str = "y",
        turns: Any = None,
        turn_from: Columns = "from_link",
        turn_to: Columns = "to_link",
        u_turns: bool = True,
        attributes: Sequence[str] | None = None,
        left_turn: tuple[float, float] = LEFT_TURN,
    ) -> RoadNetwork:
        """From a graph of networkx whose edges are the links; each edge of an undirected graph is two.

        Links are called (u, v), in a multigraph (u, v, key), or by the edges' attribute `link`. Numbers that the edges
        carry are attributes; `x` and `y` of the nodes are coordinates. The rest is as in `from_frame`.
        """
        from revealed.routes.graphs import read_graph

        require_flag("u_turns", u_turns)
        known = read_graph(graph, link, x, y, attributes)
        joined = join_links(known, turns, turn_from, turn_to, u_turns, attributes)
        return cls._of(known, joined, attributes, left_turn)

    @classmethod
    def _of(
        cls, links: Links, turns: Turns, attributes: Any, left_turn: tuple[float, float] = LEFT_TURN
    ) -> RoadNetwork:
        if turns.source.size == 0:
            remedy = "Check the node columns, or the turns."
            raise InvalidInput.impossible("no link leads to another: there is no turn", None, remedy, "links")
        S = len(links.labels)
        n_slots = np.bincount(turns.source, minlength=S)
        begin = np.cumsum(n_slots) - n_slots
        per_link, per_turn = with_built_ins(links, turns, left_turn)
        network = cls(
            links=links.labels,
            source=turns.source,
            target=turns.target,
            slot=np.arange(turns.source.size) - begin[turns.source],
            n_slots=n_slots,
            link_values=per_link,
            turn_values=per_turn,
            nodes=links.nodes,
            coordinates=links.coordinates,
            arrival=np.full(S, -1, dtype=np.intp),
            left_out=links.left_out | turns.left_out,
            notes=notes_on(links.left_out, "links") + notes_on(turns.left_out, "turns"),
        )
        for name in () if attributes is None else as_names(attributes):
            network.attribute(name, "attributes")
        return network

    def __repr__(self) -> str:
        ends = self.n_links - np.unique(self.source).size
        more = f", {ends} dead end{'s' if ends > 1 else ''}" if ends else ""
        told = ", ".join(self.attributes) + (f"; not used: {listed(list(self.left_out))}" if self.left_out else "")
        return f"RoadNetwork({self.n_links} links, {how_many(self.n_turns, 'turn')}{more}; {told})"

    @property
    def n_links(self) -> int:
        return len(self.links)

    @property
    def n_turns(self) -> int:
        return int(self.source.size)

    @property
    def n_actions(self) -> int:
        """The most turns at the end of one link."""
        return int(self.n_slots.max())

    @cached_property
    def pair(self) -> Ints:
        """(E,): the place s*A + a of each turn among the model's pairs; increasing."""
        return frozen(self.source * self.n_actions + self.slot)

    @cached_property
    def leads(self) -> Ints:
        """(S, A): the link that each pair leads to, −1 where there is no turn."""
        out = np.full(self.n_links * self.n_actions, -1, dtype=np.intp)
        out[self.pair] = self.target
        return frozen(out.reshape(self.n_links, self.n_actions))

    @cached_property
    def mdp(self) -> MDP:
        """The model without its reward: γ = 1, a state per link under its label; links without a turn are terminal."""
        S, A = self.n_links, self.n_actions
        offered = np.zeros(S * A, dtype=bool)
        offered[self.pair] = True
        starts = np.concatenate([[0], np.cumsum(offered)])
        moves = sp.csr_array((np.ones(self.n_turns), self.target, starts), shape=(S * A, S))
        feasible = offered.reshape(S, A)
        return MDP(moves, 1.0, feasible=feasible, terminal=~feasible.any(axis=1), state_labels=self.links)

    # -- names --------------------------------------------------------------------------------------------------------

    @cached_property
    def place(self) -> dict[str, int]:
        """The index of each link by the text of its label."""
        return places_by_text(self.links)

    def index(self, link: Any, argument: str = "link") -> int:
        """The index of a link by its label, which may be a whole number."""
        return int(self.indices([link], argument)[0])

    def indices(self, links: Any, argument: str = "links") -> Ints:
        """The indices of links by their labels; of one label or of several."""
        one = isinstance(links, str) or (isinstance(links, tuple) and spell(links) in self.place)
        several = [links] if one else as_list(links)
        wanted = [links] if several is None else several
        index = np.array([self.place.get(spell(label), -1) for label in wanted], dtype=np.intp)
        return find(argument, wanted, self.links, "entry") if (index < 0).any() else index

    def turns_between(self, source: Ints, target: Ints) -> Ints:
        """The turn from each link to another, by their indices; −1 where there is none."""
        shape = getattr(source, "shape", None)
        source = require_places("source", source, self.n_links, "links")
        target = require_places("target", target, self.n_links, "links")
        if source.shape != target.shape:
            raise InvalidInput("target", f"as many links as in source ({source.size})", f"{target.size}")
        wanted = source * self.n_links + target
        k = np.minimum(np.searchsorted(self._keys, wanted), self.n_turns - 1)
        return np.where(self._keys[k] == wanted, k, -1).reshape(source.shape if shape is None else shape)

    @cached_property
    def _keys(self) -> Ints:
        """One increasing number per turn: turns stand in the order of links left and, there, of links entered."""
        return self.source * self.n_links + self.target

    def turn_index(self, turn_from: Any, turn_to: Any) -> int:
        """Which turn leads from one link to another, both by label: its place in `source`, `target` and `attribute`."""
        ends = [self.indices([turn_from], "turn_from"), self.indices([turn_to], "turn_to")]
        k = int(self.turns_between(*ends)[0])
        if k < 0:
            what = f"no turn leads from link {plain(turn_from)!r} to link {plain(turn_to)!r}"
            raise InvalidInput.impossible(what, None, self.ways_in_words(int(ends[0][0])), "turn_to")
        return k

    def ways_in_words(self, link: int) -> str:
        """Where the turns at the end of a link lead, for a message."""
        require_place("link", link, self.n_links, "links")
        ways = [self.links[k] for k in self.target[self.source == link]]
        name = shown(plain(self.links[link]))
        return f"Turns from link {name} lead to {listed(ways)}." if ways else f"Link {name} is a dead end."

    # -- attributes ---------------------------------------------------------------------------------------------------

    @property
    def attributes(self) -> tuple[str, ...]:
        """What is known of turns: attributes of the links they enter, then their own."""
        own = [name for name in self.turn_values if name not in self.link_values]
        built_in = [name for name in BUILT_IN if name in own]
        return (*self.link_values, *(name for name in own if name not in BUILT_IN), *built_in)

    def attribute(self, name: str, argument: str = "name") -> Floats:
        """(E,) one value per turn: its own or, where it has none, that of the link it enters."""
        if not isinstance(name, str):
            raise InvalidInput(argument, f"one of {listed(self.attributes)}", shown(name))
        if name in self.turn_values:
            return self.turn_values[name]
        if name not in self.link_values:
            known, why = self.attributes, self.left_out.get(name)
            remedy = near(name, known) if why is None else f"It is not an attribute: {why}."
            remedy = _PLACED if name in ("left_turn", "length") else remedy
            raise InvalidInput(argument, f"one of {listed(known)}", shown(name), remedy=remedy)
        return self.link_values[name][self.target]

    def features(self, columns: str | Sequence[str] | None = None, sparse: bool = False) -> Any:
        """The attributes as features of pairs: (S, A, K) with zeros where a link has fewer than A turns, as neural
        rewards take them, or `sparse` (S*A, K) with row s*A + a."""
        return make_features(self, columns, sparse)

    def reward(self, columns: str | Sequence[str] | None = None) -> LinearReward:
        """A weight for each of these attributes, by default for all but flags that no turn has ("u_turn" where there
        are none). Features are kept sparse where most would be padding or zeros."""
        return make_reward(self, columns)

    # -- trips, frames and other networks -----------------------------------------------------------------------------

    def trips(
        self,
        table: Any,
        *,
        trip: Columns = "trip",
        sequence: str = "sequence",
        link: Columns = "link",
        traveller: Columns | None = None,
        bad: str = "error",
        keep: Columns = (),
    ) -> Demonstrations:
        """Trips as decisions: a table with a row per link that a trip passes, in any order; any frame or file.

        Within a trip `sequence` (numbers or dates, gaps are fine) orders the links. The last is its destination: the
        trip's goal, where it ends. So a trip cannot pass its destination earlier; where trips do, as round trips must,
        see `with_arrivals`: trips that end at a link with an arrival link go on to it. Trips of one link, which decide
        nothing, are left out and noted. The trips are the agents, in the order of their ids; with `traveller`, a column
        with the traveller of each trip, the travellers are, and standard errors are clustered by them. `keep` names
        more columns to read, with one value per trip or traveller: `fit.with_errors("cluster", by="village")`.

        A trip that the network does not allow (an unknown link, a missing turn, a last link that is passed before, a
        duplicate sequence number) is an error; with `bad="drop"` it is left out and counted in the notes.
        """
        from revealed.routes.trips import read_trips

        return read_trips(self, table, trip, sequence, link, traveller, bad, keep)

    @property
    def links_frame(self) -> pd.DataFrame:
        """A row per link: label, nodes, attributes, coordinates, where known; `from_frame` reads it."""
        from revealed.routes.network_frames import write_links

        return write_links(self)

    @property
    def turns_frame(self) -> pd.DataFrame:
        """A row per turn: the two links and its own attributes; `from_frame(turns=...)` and `from_turns` read it."""
        from revealed.routes.network_frames import write_turns

        return write_turns(self)

    def to_frame(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """`links_frame` and `turns_frame`."""
        return self.links_frame, self.turns_frame

    def without(self, links: Any) -> RoadNetwork:
        """The network with these links closed: no turn leads into them. States and actions keep their numbers, so
        that rewards, trips and fits of the one network fit the other."""
        from revealed.routes.changes import close_links

        return close_links(self, links)

    def with_attribute(self, name: str, values: Any) -> RoadNetwork:
        """The network with an attribute added or changed, such as a toll.

        `values`: a number for every turn; (E,) numbers in the order of the turns; or a dict or Series by link (for the
        turns that enter it) or by pair (from link, to link). Links and turns not named there keep their value, or get 0
        if the attribute is new. One number for all leaves turns into arrival links at 0.
        """
        from revealed.routes.changes import change_attribute

        return change_attribute(self, name, values)

    def with_arrivals(self, destinations: Any) -> RoadNetwork:
        """The network with an arrival link behind each of these links, under the label "<link> (arrival)".

        A trip ends on entering its goal, so that it cannot pass through its last link earlier. Where that is too
        strict, the goal is an arrival link instead: the only turn into it comes from its link and has only zero
        attributes, "constant" included, and nothing leads out. Trips may then pass the link and come back to it.
        `trips` sends those that end at a link with an arrival link on to it; to the trips to other destinations arrival
        links are dead ends, which they never enter. States keep their numbers and new ones come last.
        """
        from revealed.routes.changes import add_arrivals

        return add_arrivals(self, destinations)
