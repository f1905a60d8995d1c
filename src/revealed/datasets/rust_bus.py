"""Harold Zurcher's buses (Rust 1987): when to replace an engine, as data and model in one object.

    bus = rv.datasets.rust_bus(groups=4)
    fit = rv.NFXP(bus.reward).fit(bus.mdp, bus.demonstrations)

`fit.params` are the published estimates and `fit.llf + bus.transition_llf` the published log likelihood. Mileage is cut
into bins of 450,000/`bins` miles; it grows by 0, 1, 2, … bins in a month with probabilities theta30, theta31, …, which
are the shares in the panel. As in the published standard errors, an increment is counted together with the decision of
the month that it led to.

Raw files are read where they are found. Without them counts that ship with the package do the same for groups 1 to 4
with 90 and 175 bins, but as one agent, since the counts do not identify buses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import Floats, Ints, as_list, frozen, is_index, require_count
from revealed.datasets.bus_counts import count_months, is_shipped, shipped_counts
from revealed.datasets.bus_files import FILES, Months, find_folder, read_months, shipped, where_to_put_them
from revealed.demonstrations import Demonstrations
from revealed.environments.rust_bus import ACTIONS, KEEP, REPLACE, bus_features
from revealed.errors import InvalidInput, MissingData
from revealed.gates import require_memory
from revealed.mdp import MDP
from revealed.rewards.linear import LinearReward
from revealed.transition_models import SharedOutcomes
from revealed.voices import shown

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class BusData:
    """Some of Rust's bus groups, and the model for them.

    `mdp` has the mileage bins as states, keep and replace as actions, a new engine as the start, and increments
    estimated from the data (`mdp.estimated`); `reward` has the parameters RC and theta11; `counts` (2·bins, increments)
    says how often each increment came with each decision, bin x and action a in row 2x + a; `source` says where the
    data come from.
    """

    groups: tuple[int, ...]
    bins: int
    mdp: MDP
    reward: LinearReward
    demonstrations: Demonstrations
    counts: Floats = field(repr=False)
    source: str
    months: Months | None = field(repr=False, default=None)

    @property
    def panel(self) -> pd.DataFrame:
        """One row per bus and month (columns as in `Months`, with `date`); needs the raw files."""
        if self.months is None:
            raise MissingData("panel", "the raw files", self.source, remedy=where_to_put_them())
        return self.months.frame()

    @property
    def increments(self) -> pd.Series:
        """The probabilities that mileage grows by 0, 1, 2, … bins in a month."""
        import pandas as pd

        share = self.counts.sum(axis=0) / self.counts.sum()
        return pd.Series(share, index=pd.RangeIndex(share.size, name="bins"), name="probability")

    @property
    def transition_llf(self) -> float:
        """The log likelihood of the increments: what to add to a fit's for that of all that was observed."""
        assert self.mdp.estimated is not None
        return self.mdp.estimated.llf

    @property
    def n_replacements(self) -> int:
        return int(self.counts[REPLACE::2].sum())

    def __repr__(self) -> str:
        which = "group " if len(self.groups) == 1 else "groups "
        months = f"{int(self.counts.sum())} months"
        if self.months is not None:
            months += f" of {self.demonstrations.n_agents} buses"
        replaced = "1 replacement" if self.n_replacements == 1 else f"{self.n_replacements} replacements"
        shares = "/".join(f"{p:.4f}" for p in self.increments)
        return (
            f"BusData({which}{', '.join(map(str, self.groups))}; {self.bins} bins, discount {self.mdp.discount:g}; "
            f"{months}, {replaced}, increments {shares}; {self.source})"
        )


def rust_bus(
    groups: int | Sequence[int] = 4,
    bins: int = 90,
    discount: float = 0.9999,
    path: Any = None,
    cost: Any = "linear",
) -> BusData:
    """Rust's buses of one or more groups (1 to 8), with mileage in `bins` bins.

    Raw files come from the folder `path`, from $REVEALED_DATA or its subfolder rust1987, or from revealed/rust1987 in
    the user's cache. Where there are none, groups 1 to 4 with 90 or 175 bins come from counts that ship with the
    package. Keeping an engine in bin x (from 0) costs θ₁₁·c(x), where c is "linear" (0.001·x), "square root"
    (0.01·√x), "quadratic" (1e-5·x²), a function of the bins or an array; replacing it costs RC.
    """
    chosen = _as_groups(groups)
    require_count("bins", bins, least=2)
    require_memory("bins", bins, 32 * int(bins))
    reward = LinearReward(bus_features(bins, cost), names=("RC", "theta11"))
    folder = find_folder(path, chosen)
    if folder is not None:
        months = read_months(folder, chosen, bins)
        counts, demos, source = count_months(months, bins), _decisions(months, bins), f"raw files in {folder}"
    elif is_shipped(chosen, bins):
        months, counts, source = None, shipped_counts(chosen, bins), "counts that ship with revealed"
        demos = Demonstrations.from_counts(counts.sum(axis=1).reshape(bins, 2))
    else:
        raise _not_shipped(chosen, bins)
    mdp = _model(counts, bins, discount, months, demos)
    frozen(counts)
    return BusData(chosen, bins, mdp, reward, demos, counts, source, months)


def _as_groups(groups: Any) -> tuple[int, ...]:
    listed = [groups] if is_index(groups) else None if isinstance(groups, str) else as_list(groups)
    if not listed or not all(is_index(g) and g in FILES for g in listed) or len(set(listed)) != len(listed):
        raise InvalidInput("groups", "one of the bus groups 1 to 8, or a list of distinct groups", shown(groups))
    return tuple(sorted(int(g) for g in listed))


def _not_shipped(groups: tuple[int, ...], bins: int) -> MissingData:
    asked = f"groups {', '.join(map(str, groups))} with {bins} bins"
    return MissingData("rust_bus", f"raw files ({shipped()})", asked, remedy=where_to_put_them())


def _decisions(months: Months, bins: int) -> Demonstrations:
    return Demonstrations.from_frame(
        months.frame(), id="bus", time="time", state="x", action="d", n_states=bins, n_actions=2
    )


def _model(counts: Floats, bins: int, discount: float, months: Months | None, demos: Demonstrations) -> MDP:
    """The MDP whose increments are estimated: with each bus's own, where buses are known."""
    increments = counts.shape[1]
    outcomes = SharedOutcomes(_landing(bins, increments), bins, [f"theta3{o}" for o in range(increments)])
    if months is None:
        estimated = outcomes.from_counts(counts)
    else:
        agent = np.searchsorted(np.array(demos.ids), months.bus)  # ids are sorted
        estimated = outcomes.fit(agent, 2 * months.x + months.d, months.usage, demos.n_agents, demos.ids)
    return MDP(estimated, discount, initial=np.arange(bins) == 0, action_labels=ACTIONS)


def _landing(bins: int, increments: int) -> Ints:
    """(bins, 2, increments): on from here (keep) or from bin 0 (replace); the last bin collects."""
    landing = np.zeros((bins, 2, increments), dtype=np.intp)
    landing[:, KEEP] = np.minimum(np.arange(bins)[:, None] + np.arange(increments), bins - 1)
    landing[:, REPLACE] = np.minimum(np.arange(increments), bins - 1)
    return landing
