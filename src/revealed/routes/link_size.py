"""The link size correction (Fosgerau, Frejinger and Karlström 2013): paths that overlap share their appeal.

Independent shocks on every turn make paths that have most links in common compete as if they had nothing in common.
The size of a link for a trip from o to d is its expected number of visits by such a trip, at parameters that are stated
beforehand; as an attribute of the link that a turn enters it is then fixed, and its weight is estimated with the
others. It depends on the trip: on the pair (o, d) by definition, or, cheaper, on the goal alone.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from revealed.checks import Floats, Ints, require_flag, require_option, require_whole
from revealed.errors import InvalidInput, InvalidReward
from revealed.gates import require_instance, require_place
from revealed.labels import listed, plain
from revealed.mdp import MDP, require_mdp
from revealed.naming import label_index
from revealed.paths import BLOCK
from revealed.positions import same_labels
from revealed.progress import Progress
from revealed.rewards.base import align_reward, is_linear, require_reward
from revealed.rewards.feature_table import column_of
from revealed.rewards.holes import require_defined, undefined
from revealed.rewards.linear import LinearReward
from revealed.routes.demand import as_demand
from revealed.routes.expected import require_ways
from revealed.routes.network import RoadNetwork
from revealed.tables import sparse_table
from revealed.transitions import is_sparse
from revealed.trip_demand import Demand

if TYPE_CHECKING:
    import pandas as pd

LEAST = 1e-10  # visits of a trip below which a link is not stored
NAME = "link_size"
_MADE_BY = "Use rv.link_size(...)."


@dataclass(frozen=True, eq=False, repr=False)
class LinkSizes:
    """The sizes of links in each case: of a goal (`by` "goal"), or of an origin and a goal ("pair").

    `matrix` is sparse (cases, S); `goal` (C,) and `origin` (C,) say whose case a row is, `origin` being −1 for goals.
    `at` are the stated model and `demand` the trips that it was asked about, so that sizes can be made again.
    """

    network: RoadNetwork
    by: str
    goal: Ints
    origin: Ints
    matrix: sp.csr_array
    at: Any = field(repr=False)
    demand: Demand = field(repr=False)

    def __post_init__(self) -> None:
        require_instance("network", self.network, RoadNetwork, "an rv.RoadNetwork")
        require_instance("demand", self.demand, Demand, "the demand that rv.demand_of returns")
        require_instance("matrix", self.matrix, sp.csr_array, "a sparse array (cases, links)", _MADE_BY)
        require_option("by", self.by, ("goal", "pair"))
        least = 0 if self.by == "pair" else -1
        for name, first in (("goal", 0), ("origin", least)):
            index = require_whole(name, getattr(self, name), "whole numbers")
            shape, n = (index.size, self.network.n_links), self.network.n_links
            if index.ndim != 1 or self.matrix.shape != shape or ((index < first) | (index >= n)).any():
                raise InvalidInput(name, f"indices of {n} links, one per row of the matrix", "others", remedy=_MADE_BY)

    @cached_property
    def _row(self) -> dict[tuple[int, int], int]:
        cases = zip(self.goal.tolist(), self.origin.tolist(), strict=True)
        return {case: k for k, case in enumerate(cases)}

    def __repr__(self) -> str:
        stored = f"{self.matrix.nnz} of {len(self.goal)} x {self.network.n_links} stored"
        return f"LinkSizes(by {self.by}, {stored})"

    def of(self, goal: int, origin: int | None = None) -> Floats:
        """(S,): the sizes for trips to a goal, for "pair" from an origin (indices of links)."""
        row = self._row.get(self._case(goal, origin))
        if row is None:
            raise self._unknown(goal, origin)
        start, end = self.matrix.indptr[row], self.matrix.indptr[row + 1]
        out = np.zeros(self.network.n_links)
        out[self.matrix.indices[start:end]] = self.matrix.data[start:end]
        return out

    def _case(self, goal: int, origin: int | None) -> tuple[int, int]:
        require_place("goal", goal, self.network.n_links, "links")
        if self.by == "goal":
            return int(goal), -1
        if origin is None:
            raise InvalidInput.conflict("origin", "is required: these link sizes are per pair of origin and goal")
        return int(goal), require_place("origin", origin, self.network.n_links, "links")

    def _unknown(self, goal: int, origin: int | None) -> InvalidInput:
        names = self.network.links
        start = "" if self.by == "goal" or origin is None else f"from {plain(names[origin])!r} "
        got = f"a trip {start}to {plain(names[goal])!r}"
        remedy = "Compute the sizes for all trips that are needed: link_size(..., demand)."
        of = "destinations" if self.by == "goal" else "pairs"
        expected = f"trips of the {len(self.goal)} {of} for which link sizes were computed"
        return InvalidInput("trips", expected, got, remedy=remedy)

    def to_frame(self) -> pd.DataFrame:
        """A row per case and link that is used: origin (for pairs), destination, link, size."""
        import pandas as pd

        names = label_index("link", self.network.links, self.network.n_links)
        entries = self.matrix.tocoo()
        case, link = entries.coords
        told = {"origin": names.take(self.origin[case])} if self.by == "pair" else {}
        told |= {"destination": names.take(self.goal[case]), "link": names.take(link), "size": entries.data}
        return pd.DataFrame(told)

    def again(self, network: RoadNetwork, at: Any) -> LinkSizes:
        """The same on a changed network; pairs without a route have no sizes."""
        require_instance("network", network, RoadNetwork, "an rv.RoadNetwork")
        if not callable(getattr(at, "cases", None)):
            raise InvalidInput("at", "an rv.RouteChoice on this network", type(at).__name__)
        return _sizes(network, at, self.demand, self.by)


def link_size(
    network: RoadNetwork,
    reward: Any,
    params: Any,
    demand: Any,
    per: str = "pair",
    progress: bool | None = None,
    **columns: Any,
) -> LinkSizes:
    """The expected visits of every link by one trip, at stated parameters.

    Parameters
    ----------
    reward, params : the model at which flows are expected, such as travel time and a constant per link, and its
        parameters (numbers, a dict or Series by name, or a fit). They must be given: there is no default.
    demand : trips (demonstrations with goals) or a table of origins and destinations: the cases that sizes are for.
    per : "pair", the original definition: each pair of origin and destination has its own, from one solve with the
        transpose. "goal": all trips to a goal together, as they are distributed over origins, divided by their number.
        Sizes cost about the same; what is estimated with them does not: a factorisation per pair, or per goal, at
        every θ.
    progress : None shows a bar on a terminal; True and False force it.
    columns : names of the columns of a table, where they are not origin, destination and trips.
    """
    from revealed.routes.choice import RouteChoice

    require_option("per", per, ("goal", "pair"))
    if progress is not None:
        require_flag("progress", progress)
    at = RouteChoice(network, reward, params)
    if at.by is not None:
        raise InvalidInput.conflict("reward", "cannot have link sizes itself")
    table = as_demand(network, demand, **columns)
    kept = table.keep(table.trips > 0.0)
    require_ways(kept, network.mdp)
    return _sizes(network, at, kept, per, progress)


def _sizes(network: RoadNetwork, at: Any, demand: Demand, by: str, progress: bool | None = None) -> LinkSizes:
    """One factorisation serves all: a goal is a right-hand side of it, and a pair one of its transpose."""
    cases: list[tuple[int, int]] = []
    links: list[Ints] = []
    values: list[Floats] = []
    with Progress("link sizes", progress, total=len(demand)) as bar:
        for toward, rows in at.cases(demand):
            parts = np.split(rows, rows.size) if by == "pair" else [rows]
            for i in range(0, len(parts), BLOCK):
                some = parts[i : i + BLOCK]
                for visits, part in zip(_visits(toward, demand, some).T, some, strict=True):
                    cases.append((toward.goal, int(demand.origin[part[0]]) if by == "pair" else -1))
                    links.append(np.flatnonzero(visits > LEAST))
                    values.append(visits[links[-1]])
                bar.update(f"{len(demand)} pairs", advance=sum(part.size for part in some))
    row = np.repeat(np.arange(len(cases)), [len(some) for some in links])
    shape = (len(cases), network.n_links)
    matrix = sparse_table(np.concatenate(values or [[]]), row, np.concatenate(links or [[]]).astype(np.intp), shape)
    goal, origin = np.array(cases, dtype=np.intp).reshape(-1, 2).T
    return LinkSizes(network, by, goal, origin, matrix, at, demand)


def _visits(toward: Any, demand: Demand, parts: list[Ints]) -> Floats:
    """(S, B): expected visits of one trip of each part of the demand; zero where none of them has a way."""
    going = [part[np.isfinite(toward.value[demand.origin[part]])] for part in parts]
    starts = np.column_stack([demand.starts(part) for part in going])
    return toward.visits(starts / np.maximum(starts.sum(axis=0), np.finfo(np.float64).tiny))


class LinkSizeReward:
    """A linear reward with one more parameter, "link_size": the weight of the size of the link that a turn enters.

    `by` says on what its features depend: on the "goal" or on the "pair" of origin and goal. `toward(goal, origin)` is
    the plain reward of that case. The table of the reward itself (`value`, `jacobian`) has size zero everywhere.
    """

    linear = True
    shared: tuple[tuple[str, ...], tuple[str, ...]] | None = None  # features that are the network's attributes, here
    # and where sizes are stated; older files do not tell

    def __init__(self, reward: LinearReward, sizes: LinkSizes) -> None:
        if not isinstance(sizes, LinkSizes):
            raise InvalidInput("sizes", "link sizes, as returned by rv.link_size(...)", type(sizes).__name__)
        require_reward(reward)
        reward = align_reward(reward, sizes.network.mdp)
        if not is_linear(reward):
            raise InvalidReward("reward", "a linear reward", type(reward).__name__)
        if NAME in reward.names:
            raise InvalidReward.conflict("reward", f"cannot have a parameter called {NAME!r}")
        self.base, self.sizes = reward, sizes
        self._matrix = _per_pair(reward, sizes.network)
        require_defined(reward, sizes.network.mdp)
        at = sizes.at
        self.shared = _shared(reward, sizes.network), _shared(at.reward_model, at.network)
        self._none = self._with(np.zeros(0), np.zeros(0, dtype=np.intp))

    @property
    def by(self) -> str:
        return self.sizes.by

    def require_model(self, mdp: MDP) -> None:
        """Sizes and features are those of the links and turns of one network, in its order: another model is refused,
        also one of the same links in another order."""
        require_mdp(mdp)
        network = self.sizes.network
        if mdp.state_labels is not None and not same_labels(network.links, mdp.state_labels):
            expected = f"link sizes of the model's links in their order ({listed(mdp.state_labels)})"
            raise InvalidReward("reward", expected, f"sizes of {listed(network.links)}", remedy=_ANEW)
        if mdp.feasible.shape != network.leads.shape or not mdp.certain:
            raise InvalidReward("reward", "link sizes of this model's turns", "those of another network", remedy=_ANEW)
        other = mdp.feasible & (mdp.targets != network.leads)
        if other.any():
            s = int(np.argwhere(other)[0][0])
            got, where = "those of another network", f"link {plain(network.links[s])!r}"
            raise InvalidReward("reward", "link sizes of this model's turns", got, where, _ANEW)

    @property
    def n_params(self) -> int:
        return self._none.n_params

    @property
    def names(self) -> tuple[str, ...]:
        return self._none.names

    def __repr__(self) -> str:
        return f"LinkSizeReward({self.base!r}, by {self.by})"

    @property
    def undefined(self) -> Any:
        return undefined(self.base)

    def _again(self) -> LinkSizeReward:
        """The same with its sizes computed again."""
        from revealed.routes.choice import RouteChoice

        at = RouteChoice(self.sizes.at.network, self.sizes.at.reward_model, self.sizes.at.theta)
        return LinkSizeReward(self.base, self.sizes.again(self.sizes.network, at))

    def _with_order(self, order: Ints) -> LinkSizeReward:
        """The same with the attributes in another order; the link size stays last."""
        return LinkSizeReward(self.base._with_order(order[:-1]), self.sizes)

    def init(self, seed: int | None = None) -> Floats:
        return np.append(self.base.init(seed), 0.0)

    def value(self, theta: Floats) -> Floats:
        return self._none.value(theta)

    def vjp(self, theta: Floats, cotangent: Floats) -> Floats:
        return self._none.vjp(theta, cotangent)

    def jacobian(self, theta: Floats) -> Any:
        return self._none.jacobian(theta)

    def toward(self, goal: int, origin: int | None = None) -> LinearReward:
        """The reward of trips to a goal, for `by` "pair" from an origin; both are indices of links."""
        network = self.sizes.network
        size = self.sizes.of(goal, origin)[network.target]
        used = np.flatnonzero(size)
        other = copy(self._none)
        other.matrix = _beside(self._matrix, size[used], network.pair[used])
        return other

    def _with(self, size: Floats, pair: Ints) -> LinearReward:
        network = self.sizes.network
        S, A = network.n_links, network.n_actions
        features = _beside(self._matrix, size, pair)
        names = [*self.base.names, NAME]
        made = LinearReward(features if is_sparse(features) else features.reshape(S, A, -1), names, n_actions=A)
        gone = self.undefined
        made.absent = None if gone is None else np.broadcast_to(gone, (S, A))
        return made


_ANEW = "Compute the sizes on the network of this model: rv.link_size(network, ...)."


def _per_pair(reward: Any, network: RoadNetwork) -> Any:
    """(S*A, K) features, also where those of the reward belong to states."""
    S, A = network.n_links, network.n_actions
    matrix = reward.jacobian(reward.init())
    rows = int(matrix.shape[0])
    if rows not in (S, S * A):
        raise InvalidReward("reward", f"features of {S} links, or of {A} turns for each", f"{rows} rows")
    if rows == S * A and A > 1:
        return matrix
    return matrix[np.repeat(np.arange(S), A)]


def _shared(reward: Any, network: RoadNetwork) -> tuple[str, ...]:
    """The features that are the network's attributes of their names."""
    names = [str(name) for name in reward.names] if is_linear(reward) else []
    matrix = _per_pair(reward, network) if names else None
    known = [(k, name) for k, name in enumerate(names) if name in network.attributes]
    return tuple(
        name for k, name in known if np.array_equal(column_of(matrix, k)[network.pair], network.attribute(name))
    )


def _beside(matrix: Any, values: Floats, rows: Ints) -> Any:
    """The matrix with one more column, of these values in these rows."""
    if is_sparse(matrix):
        column = sparse_table(values, rows, np.zeros(rows.size, dtype=np.intp), (matrix.shape[0], 1))
        return sp.csr_array(sp.hstack([matrix, column], format="csr"))
    out = np.zeros((matrix.shape[0], matrix.shape[1] + 1))
    out[:, :-1] = matrix
    out[rows, -1] = values
    return out
