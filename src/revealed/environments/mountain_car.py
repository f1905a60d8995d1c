"""Mountain Car (Moore 1990; the paper's Figures 2 and 7): a car too weak for the hill has to swing up to its goal.

The car itself is continuous, with Gymnasium's dynamics. The model that agents and methods plan with lives on a grid
of nodes over position and velocity: state = position · bins + velocity. The expert is solved on the exact model and
drives the continuous car; its drives are recorded at the nearest nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from revealed.checks import Ints, require_count, require_flag, require_number, require_option
from revealed.demonstrations import Demonstrations
from revealed.environments.kernel_transitions import BANDWIDTH, Places, check_bandwidth, kernel_transitions
from revealed.environments.world import World, check_scale, make_expert
from revealed.errors import InvalidInput
from revealed.gates import require_memory, within_memory
from revealed.mdp import MDP, Floats
from revealed.rewards.base import Reward
from revealed.rewards.tabular import TabularReward
from revealed.simulation import draw_actions, make_rng
from revealed.voices import arg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ACTIONS = ("push left", "coast", "push right")
POSITION, VELOCITY, GOAL = (-1.2, 0.6), (-0.07, 0.07), 0.5
SUMMIT = POSITION[1]
START = (-0.6, -0.4)  # uniform, at rest
FORCE, GRAVITY = 0.001, 0.0025


def step(position: Any, velocity: Any, action: Any) -> tuple[Floats, Floats]:
    """One step of the continuous car, as in Gymnasium's MountainCar-v0; the left wall takes all speed."""
    x, v = np.asarray(position, dtype=np.float64), np.asarray(velocity, dtype=np.float64)
    v = np.clip(v + (np.asarray(action) - 1) * FORCE - np.cos(3 * x) * GRAVITY, *VELOCITY)
    x = np.clip(x + v, *POSITION)
    return x, np.where((x == POSITION[0]) & (v < 0), 0.0, v)


@dataclass(frozen=True, eq=False)
class Nodes:
    """The grid: `bins` positions and `bins` velocities, ends included."""

    bins: int

    @property
    def positions(self) -> Floats:
        return np.linspace(*POSITION, self.bins)

    @property
    def velocities(self) -> Floats:
        return np.linspace(*VELOCITY, self.bins)

    @property
    def all(self) -> tuple[Floats, Floats]:
        """Position and velocity of every state."""
        x, v = np.meshgrid(self.positions, self.velocities, indexing="ij")
        return x.reshape(-1), v.reshape(-1)

    @property
    def ended(self) -> npt.NDArray[np.bool_]:
        """(bins,) which positions are at the goal."""
        return self.positions >= GOAL

    def units(self, position: Floats, velocity: Floats) -> tuple[Floats, Floats]:
        """Both in steps of the grid, from 0 to bins − 1."""
        low, high = np.array([POSITION[0], VELOCITY[0]]), np.array([POSITION[1], VELOCITY[1]])
        per_step = (self.bins - 1) / (high - low)
        return (position - low[0]) * per_step[0], (velocity - low[1]) * per_step[1]

    def nearest(self, position: Floats, velocity: Floats) -> Ints:
        """The state that stands for a place: the nearest node that is at the goal if and only if the place is."""
        first = int(self.ended.argmax())
        i, j = (np.floor(u + 0.5).astype(np.intp) for u in self.units(position, velocity))
        i = np.where(position >= GOAL, np.maximum(i, first), np.minimum(i, first - 1))
        return i * self.bins + np.clip(j, 0, self.bins - 1)

    def spread(self, position: Floats, velocity: Floats) -> tuple[Ints, Floats]:
        """(n, 4) the nodes around each place and their bilinear weights, whose mean is that place.

        A place at the goal is spread over nodes at the goal alone: the drive has ended.
        """
        x, y = self.units(np.where(position >= GOAL, np.maximum(position, self._first_ended), position), velocity)
        i, j = (np.clip(np.floor(u).astype(np.intp), 0, self.bins - 2) for u in (x, y))
        right, up = np.clip(x - i, 0.0, 1.0), np.clip(y - j, 0.0, 1.0)
        nodes = np.stack(
            [i * self.bins + j, i * self.bins + j + 1, (i + 1) * self.bins + j, (i + 1) * self.bins + j + 1]
        )
        weights = np.stack([(1 - right) * (1 - up), (1 - right) * up, right * (1 - up), right * up])
        return nodes.T, weights.T

    @property
    def _first_ended(self) -> float:
        return float(self.positions[self.ended.argmax()])


@dataclass(frozen=True, eq=False)
class Drives:
    """Continuous trajectories: `position` and `velocity` (n, L + 1), `action` (n, L); after the end NaN and −1."""

    position: Floats
    velocity: Floats
    action: Ints

    def __len__(self) -> int:
        return len(self.action)

    def __getitem__(self, which: slice) -> Drives:
        """Some of the drives: `drives[:100]`."""
        return Drives(self.position[which], self.velocity[which], self.action[which])

    def __repr__(self) -> str:
        return f"Drives({len(self)} drives, {self.lengths.sum()} decisions, {self.reached.mean():.0%} at the goal)"

    @property
    def lengths(self) -> Ints:
        return (self.action >= 0).sum(axis=1)

    @property
    def reached(self) -> npt.NDArray[np.bool_]:
        """Which drives ended at the goal."""
        return self.position[np.arange(len(self)), self.lengths] >= GOAL


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MountainCar(World):
    """`exact` is the model of reality, on which metrics are taken, whatever `mdp` is; `unsupported` counts the pairs of
    a kernel estimate without data nearby (None for the exact model)."""

    nodes: Nodes
    exact: MDP
    unsupported: int | None = None

    def __repr__(self) -> str:
        note = "" if self.unsupported is None else f", kernel transitions, {self.unsupported} pairs without support"
        return f"MountainCar({self.mdp!r}{note})"

    def reward_model(self) -> Reward:
        """One weight per state: the features are one-hot."""
        return TabularReward(self.mdp.n_states)

    @property
    def _reality(self) -> MDP:
        """Also where transitions were estimated."""
        return self.exact

    @within_memory("n", "length")
    def drive(self, n: int = 100, length: int | None = None, seed: int | None = None) -> Drives:
        """`n` drives of the expert in the continuous dynamics, until the goal or `length` decisions."""
        length = self.length if length is None else length
        require_count("n", n)
        require_count("length", length)
        require_memory("n, length", (n, length), 3 * int(n) * (int(length) + 1))
        rng = make_rng(seed)
        x, v = np.full((n, length + 1), np.nan), np.full((n, length + 1), np.nan)
        action = np.full((n, length), -1, dtype=np.intp)
        x[:, 0], v[:, 0] = rng.uniform(*START, size=n), 0.0
        alive = np.arange(n)
        for t in range(length):
            here = self.nodes.nearest(x[alive, t], v[alive, t])
            action[alive, t] = draw_actions(self.expert[here], rng)
            x[alive, t + 1], v[alive, t + 1] = step(x[alive, t], v[alive, t], action[alive, t])
            alive = alive[x[alive, t + 1] < GOAL]
            if alive.size == 0:
                break
        return Drives(x, v, action)

    def discretise(self, drives: Drives) -> Demonstrations:
        """Drives as states of the grid: each place becomes its nearest node.

        Between the nodes nearest to a drive there may be moves that the model, which starts from nodes, does not know;
        a fit notes how many.
        """
        _require_drives(drives)
        paths = []
        for x, v, action, k in zip(drives.position, drives.velocity, drives.action, drives.lengths, strict=True):
            paths.append((self.nodes.nearest(x[: k + 1], v[: k + 1]), action[:k]))
        return Demonstrations.from_trajectories(paths, self.mdp.n_states, self.mdp.n_actions)

    def demonstrate(self, n: int = 100, length: int | None = None, seed: int | None = None) -> Demonstrations:
        """`n` drives of the expert in the continuous dynamics, as states of the grid; walks on the model itself where
        an estimate is taken for the world."""
        if self.unsupported is not None and self.exact is self.mdp:
            return super().demonstrate(n, length, seed)
        return self.discretise(self.drive(n, length, seed))

    def with_kernel_transitions(
        self, drives: Drives, bandwidth: tuple[float, float] = BANDWIDTH, known: bool = False
    ) -> MountainCar:
        """The same car with transitions estimated from drives (see `kernel_transitions`); the expert stays.

        With `known` the estimate is taken for the world itself: an expert who is optimal on it in the soft sense, walks
        drawn on it, metrics taken on it.
        """
        _require_drives(drives)
        require_flag("known", known)
        went = np.nonzero(drives.action >= 0)
        after = (went[0], went[1] + 1)
        origin, outcome = (
            Places(*self.nodes.units(drives.position[w], drives.velocity[w]), drives.position[w] >= GOAL)
            for w in (went, after)
        )
        T, unsupported = kernel_transitions(
            origin, outcome, drives.action[went], self.nodes.bins, self.nodes.ended, len(ACTIONS), bandwidth
        )
        mdp = self.mdp.replace(transitions=T)
        if not known:
            return replace(self, mdp=mdp, unsupported=unsupported)
        return replace(self, mdp=mdp, exact=mdp, unsupported=unsupported).with_expert("soft")

    @property
    def _figsize(self) -> tuple[float, float]:
        return (5.6, 4.4)

    _log_visits = True

    def _draw(self, ax: Axes, values: Floats, policy: Floats | None, **style: Any) -> None:
        from revealed.plots import plot_plane

        push = None if policy is None else np.where(self.mdp.terminal, np.nan, policy[:, 2] - policy[:, 0])
        style = {"names": ("position", "velocity"), "mark": GOAL} | style
        plot_plane(ax, values, self.nodes.positions, self.nodes.velocities, push, **style)


def _require_drives(drives: Any) -> None:
    if not isinstance(drives, Drives):
        remedy = "Use car.drive(1000, seed=0): demonstrations do not keep the car's position within its cell."
        raise InvalidInput("drives", "Drives", type(drives).__name__, remedy=remedy)


@within_memory("bins", "trajectories", "length")
def mountain_car(
    bins: int = 100,
    discount: float = 0.99,
    scale: float = 10.0,
    transitions: str = "exact",
    trajectories: int = 1000,
    length: int = 200,
    seed: int = 0,
    bandwidth: tuple[float, float] = BANDWIDTH,
    expert: str = "soft",
    noise: float = 0.3,
    target: float = SUMMIT,
    known: bool = False,
) -> MountainCar:
    """Gymnasium's car on `bins` × `bins` nodes, whose true reward is −`scale` × the distance to the goal.

    Places x ≥ 0.5 are terminal; drives start at rest, uniformly in [−0.6, −0.4]. `transitions="exact"` distributes the
    successor of each node over the four surrounding nodes; "kernel" estimates T from `trajectories` drives of the
    expert, of at most `length` decisions, drawn from `seed` (the paper's appendix; `bandwidth` as in
    `kernel_transitions`). With `known` the estimate is taken for the world itself: the expert is solved on it again,
    `demonstrate` draws walks on it, and metrics are taken on it.

    The expert is solved on the exact model. With shocks of scale 1 a small reward is too weak: at `scale=1` the entropy
    of driving on pays more than the distance costs, and no expert arrives. For the same reason the distance is measured
    to `target` = 0.6, the far end of the goal, so that every step before the line at 0.5 costs something; if it
    were measured to the line, the last steps would cost nothing and a soft expert would linger there.
    """
    require_count("bins", bins, least=4)
    require_memory("bins", bins, 64 * int(bins) ** 2)
    require_option("transitions", transitions, ("exact", "kernel"))
    require_flag("known", known)
    if known and transitions == "exact":
        raise InvalidInput.conflict("known", f"has no effect with `{arg('transitions', 'exact')}`: that model is known")
    require_count("trajectories", trajectories)
    require_count("length", length)
    require_memory("trajectories, length", (trajectories, length), 3 * int(trajectories) * (int(length) + 1))
    make_rng(seed)
    check_bandwidth(bandwidth)
    nodes = Nodes(int(bins))
    x, _ = nodes.all
    mdp = MDP(_exact(nodes), discount, _start(nodes), terminal=x >= GOAL, action_labels=ACTIONS)
    weights = -check_scale(scale) * np.abs(require_number("target", target) - x) * (x < GOAL)
    true_reward = np.repeat(weights[:, None], len(ACTIONS), axis=1)
    car = MountainCar(
        name="Mountain Car",
        mdp=mdp,
        features=sp.csr_array(sp.eye_array(mdp.n_states)),
        true_reward=true_reward,
        expert=make_expert(mdp, true_reward, expert, noise),
        true_weights=weights,
        length=length,
        nodes=nodes,
        exact=mdp,
    )
    if transitions == "exact":
        return car
    kernel = car.with_kernel_transitions(car.drive(trajectories, length, seed), bandwidth, known)
    return kernel.with_expert(expert, noise) if known and expert != "soft" else kernel


def _exact(nodes: Nodes) -> sp.csr_array:
    """Sparse (S*3, S): each node's successor, spread bilinearly."""
    x, v = (np.repeat(u, len(ACTIONS)) for u in nodes.all)
    columns, weights = nodes.spread(*step(x, v, np.tile(np.arange(len(ACTIONS)), nodes.bins**2)))
    starts = np.arange(0, columns.size + 1, 4)
    T = sp.csr_array((weights.reshape(-1), columns.reshape(-1), starts), shape=(len(columns), nodes.bins**2))
    T.sum_duplicates()
    T.eliminate_zeros()
    return T


def _start(nodes: Nodes) -> Floats:
    """The uniform start, spread over nodes: bilinear weights are linear between nodes, so trapezoids are exact."""
    inner = nodes.positions[(nodes.positions > START[0]) & (nodes.positions < START[1])]
    x = np.concatenate([START[:1], inner, START[1:]])
    gap = np.diff(x)
    weight = (np.concatenate([[0.0], gap]) + np.concatenate([gap, [0.0]])) / (2 * (START[1] - START[0]))
    columns, share = nodes.spread(x, np.zeros_like(x))
    p = np.zeros(nodes.bins**2)
    np.add.at(p, columns.reshape(-1), (share * weight[:, None]).reshape(-1))
    return p
