"""How sure the estimates behind an answer are: their covariance, or draws of a bootstrap (theory L3).

A `Doubt` is what is known of (θ, ψ) beyond the estimate. With a covariance a quantity's standard error follows from
its slope; with draws, every quantity is computed again for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from revealed.bootstrap import FEW, TOO_FEW, Bootstrap, draw_weights
from revealed.checks import Bools, Floats, require_option, require_share
from revealed.diagnosis import describe_directions
from revealed.eigen import symmetric_eigen
from revealed.errors import InvalidInput, InvalidOption, RevealedError, SolverFailed, ValueDoesNotExist
from revealed.inference import MOST_NUMBERS
from revealed.influence import Group, Influence
from revealed.labels import how_many, unknown
from revealed.mdp import ARGUMENTS
from revealed.parallel import each
from revealed.progress import Progress
from revealed.voices import arg, either, words

BANDS = ("auto", "delta", "bootstrap")
DRAWING = ("reps", "seed", "jobs", "progress")  # options of a bootstrap
IN_WORDS = {"delta": "delta method", "bootstrap": "bootstrap percentiles"}
PIECE = 1_000_000  # numbers of a derivative in some of very many ψ that are held at once
ROUNDING = 1e-10  # a slope so small, relative to what it is made of, is none
NEGATIVE = 1e-8  # a variance so far below zero, relative to what it is made of, is not rounding
MOST_WORDS = 3  # directions that are named one by one


@dataclass(frozen=True, eq=False)
class Recounts:
    """(R, C): how often each class of moves was seen in the draws `index` (R,) of a bootstrap. Rows are counted when
    they are asked for: all of them together may be more than memory holds."""

    by_agent: Any
    seed: int
    index: Any

    def __getitem__(self, piece: Any) -> Floats:
        n, classes = self.by_agent.shape
        rows = [self.by_agent.T @ draw_weights(n, self.seed, int(r)) for r in self.index[piece]]
        return np.asarray(rows, dtype=np.float64).reshape(-1, classes)


@dataclass(frozen=True, eq=False)
class Doubt:
    """`kind` is "delta" with a covariance `cov` (M, M) over (θ, ψ), the directions `hidden` (n, M) that it knows
    nothing of, and the parameters' own standard errors `own` (M,); where there are very many ψ, `cov` is of θ alone,
    were ψ known, and `noise` has the rest; or "bootstrap" with draws `theta` (R, K) and `psi`
    (R, L), or counts (R, C) of what was seen where transitions have no ψ; None where nothing is known. `notes` say
    why."""

    kind: str | None
    level: float
    cov: Floats | None = field(repr=False, default=None)
    hidden: Floats | None = field(repr=False, default=None)
    own: Floats | None = field(repr=False, default=None)
    noise: Influence | None = field(repr=False, default=None)
    theta: Floats | None = field(repr=False, default=None)
    psi: Floats | Recounts | None = field(repr=False, default=None)
    progress: bool | None = None
    jobs: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def tails(self) -> tuple[float, float]:
        return (1.0 - self.level) / 2.0, (1.0 + self.level) / 2.0

    @property
    def z(self) -> float:
        """How many standard errors a band reaches to either side."""
        from statistics import NormalDist

        return NormalDist().inv_cdf(self.tails[1])

    @property
    def n_psi(self) -> int:
        """How many ψ the noise beyond `cov` is of."""
        return 0 if self.noise is None else int(self.noise.psi.shape[1])

    def most_at_once(self, n_pairs: int) -> int:
        """The most sources of noise that come in one group."""
        return max((group.rows.size for group in self.groups(n_pairs)), default=0)

    def groups(self, n_pairs: int) -> Iterator[Group]:
        """The sources of noise beyond `cov`, in pieces whose derivatives can be held for so many pairs."""
        return iter(()) if self.noise is None else self.noise.groups(max(1, PIECE // n_pairs))

    def spread(self, G: Floats, size: Floats, scale: float = 1.0) -> Floats:
        """Standard errors of quantities with slopes G, where all of them are at hand."""
        return Spread(self, G, size, scale).se


class Spread:
    """√(g'Cg) for the slopes g along the last axis of G; NaN for a quantity that moves in a hidden direction, or whose
    variance would be negative.

    Features that are collinear hide single weights, not what follows from them together: there g'd = 0 along each
    hidden d. `size` (M,) is how far each parameter moves values and `scale` the size of the quantity, by which rounding
    is told from a move. Slopes in very many ψ come later, piece by piece.
    """

    def __init__(self, doubts: Doubt, G: Floats, size: Floats, scale: float = 1.0) -> None:
        assert doubts.cov is not None
        assert doubts.hidden is not None
        self._doubts, self._scale, self._shape = doubts, scale, G.shape[:-1]
        self._flat = flat = G.reshape(-1, G.shape[-1])
        self._var = np.einsum("im,im->i", flat @ doubts.cov, flat)
        self._made_of = np.einsum("im,im->i", np.abs(flat) @ np.abs(doubts.cov), np.abs(flat))
        floor = ROUNDING * scale * (np.abs(doubts.hidden) @ size)
        self._lost = (np.abs(flat @ doubts.hidden.T) > floor).any(axis=1)
        self._gathered: Floats | None = None

    def add(self, group: Group, piece: tuple[int, int], G: Floats, size: Floats) -> None:
        """The slopes in one piece of the ψ that a group of sources moves; the last piece closes the group."""
        noise, (begin, end) = self._doubts.noise, piece
        assert noise is not None
        flat = G.reshape(-1, end - begin)
        if self._gathered is None:
            self._gathered = self._flat @ noise.theta[group.rows].T
        self._gathered += (noise.psi[group.rows][:, begin:end] @ flat.T).T
        K = noise.theta.shape[1]
        unknown = noise.lost[K + begin : K + end]
        self._lost |= (np.abs(flat[:, unknown]) > ROUNDING * self._scale * size[unknown]).any(axis=1)
        if end == group.pieces[-1][1]:
            self._var += np.einsum("ir,ir->i", self._gathered, self._gathered)
            self._gathered = None

    @property
    def se(self) -> Floats:
        var = self._var.copy()
        var[self._lost | (var < -NEGATIVE * self._made_of)] = np.nan
        return np.sqrt(np.maximum(var, 0.0)).reshape(self._shape)


def require_known(call: str, given: dict[str, Any], arguments: Sequence[str], parameters: Sequence[str] = ()) -> None:
    """Refuses unknown keywords, with a remedy: what belongs to the model is changed in the model, and `parameters` of
    the reward, where they can be changed, in `params`."""
    known = (*arguments, *DRAWING)
    for name, value in given.items():
        if name in DRAWING:
            continue
        shown = repr(value) if len(repr(value)) <= 40 else "..."
        remedy = None
        if name in ARGUMENTS:
            remedy = f"It belongs to the model: fit.counterfactual(mdp=fit.mdp.replace({name}={shown}))."
        elif name in parameters:
            remedy = f"It is a parameter of the reward: params={{{name!r}: {shown}}}."
        raise unknown(f"{call}()", "argument", name, known, remedy)


def doubt(fit: Any, bands: Any, level: Any, options: dict[str, Any]) -> Doubt:
    """Covariance or draws, as `bands` asks.

    "auto" follows the fit's own errors: draws where they come from a bootstrap, else the delta method; and nothing,
    with a note, where the fit has neither.
    """
    if bands is not None:
        require_option("bands", bands, BANDS)
    level = require_share("level", level)
    asked = bands != "auto" or bool(options)
    if bands == "auto":
        bands = "bootstrap" if fit.errors[0] == "bootstrap" else "delta"
    if options and bands != "bootstrap":
        raise InvalidOption.conflict(next(iter(options)), f"requires `{arg('bands', 'bootstrap')}`")
    if bands is None:
        return Doubt(None, level)
    try:
        return _bootstrap(fit, level, options, asked) if bands == "bootstrap" else _delta(fit, level)
    except RevealedError as problem:
        if asked:
            raise
        return Doubt(None, level, notes=("no bands: " + problem.message,))


def _bootstrap(fit: Any, level: float, options: dict[str, Any], asked: bool) -> Doubt:
    """The draws behind the fit's errors, as far as they came, or those that are asked for."""
    draws = fit.bootstrap(**options) if asked or options else fit.drawn
    how = {} if fit.chosen is None else fit.chosen[2]
    how = {name: (how | options).get(name) for name in ("progress", "jobs")}
    notes = [fit.errors_note] if not asked and getattr(fit, "errors_note", "") else []
    notes += (
        [f"{how_many(draws.n_failed, 'replication')} failed and {'is' if draws.n_failed == 1 else 'are'} left out."]
        if draws.n_failed
        else []
    )
    if draws.interrupted:
        notes.append(f"the bootstrap was interrupted: {len(draws.theta)} draws of {draws.asked}.")
    if fit.status.code == "unidentified":
        notes.append("choices do not identify all parameters; the minimum-norm estimates are shown.")
    psi = _draws_of_T(fit, draws, notes)
    return Doubt("bootstrap", level, theta=draws.theta, psi=psi, notes=tuple(notes), **how)


def _draws_of_T(fit: Any, draws: Bootstrap, notes: list[str]) -> Floats | Recounts:
    """What T follows in each draw: ψ; where it has none, the counts of the moves of the agents that were drawn."""
    estimated = fit.mdp.estimated
    if estimated is not None and estimated.ids != fit.demonstrations.ids:
        notes.append(f"{_AS_KNOWN}: they were not estimated from the resampled agents.")
    elif estimated is not None and estimated.psi.size == 0:
        return Recounts(estimated.by_agent, draws.seed, draws.index)
    return draws.psi


_AS_KNOWN = "bands take the transitions as known"


def _of_transitions(fit: Any, kind: str, joint: bool) -> list[str]:
    """The note where the transitions were estimated and the covariance does not count their noise."""
    if fit.mdp.estimated is None or joint:
        return []
    gap = getattr(fit, "joint_gap", lambda kind: "")(kind)
    same = fit.mdp.estimated.ids == getattr(fit.demonstrations, "ids", None)
    if not gap and (same or kind in ("hessian", "robust")):
        counted = either(f'with_errors("{kind}", joint=True)', f"revealed fit --errors {kind} --joint")
        return [words(f"{_AS_KNOWN}; {counted} accounts for their sampling error.")]
    if same:
        drawn = either('with_errors("bootstrap")', "revealed fit --errors bootstrap")
        return [words(f"{_AS_KNOWN}; {drawn} re-estimates them in every draw.")]
    return [f"{_AS_KNOWN}: they were estimated from other agents."]


def _delta(fit: Any, level: float) -> Doubt:
    kind, joint = fit.errors
    if getattr(fit.reward_model, "tabular", False):
        remedy = f"Use {arg('bands', 'bootstrap')} or {either('None', 'none')}."
        rule = "cannot be delta for one weight per state: the delta method requires a reward with features"
        raise InvalidOption.conflict("bands", rule, remedy=remedy)
    if fit.theta.size * fit.mdp.feasible.size > MOST_NUMBERS:
        what = f"{fit.theta.size} parameters and {fit.mdp.feasible.size} pairs are too many for the delta method"
        raise InvalidOption.impossible(what, None, f"Use {arg('bands', None)}.", "bands")
    noise = fit.wide_noise(kind, joint) if hasattr(fit, "wide_noise") else None
    cov, hidden = fit.partial_covariance(kind, joint)
    lost = np.isnan(np.diag(cov))
    if lost.all():
        why = "" if fit.at_maximum else f", since the search did not finish ({fit.status.code})"
        return Doubt(None, level, notes=(f"no bands: the estimates have no standard errors{why}.",))
    variance = np.diag(np.asarray(fit.cov_params(kind, joint=joint), dtype=np.float64))
    own = np.sqrt(np.where(variance >= 0.0, variance, np.nan))
    hidden = np.vstack([hidden, np.eye(lost.size)[lost]])
    notes = [_words(hidden, fit)] if len(hidden) else []
    notes += [_NOT_POSITIVE.format(kind=kind)] if _is_negative(_known(cov, lost)) else []
    notes += _of_transitions(fit, kind, joint)
    known = _known(cov if noise is None else noise.own, lost)
    return Doubt("delta", level, cov=known, hidden=hidden, own=own, noise=noise, notes=tuple(notes))


def _known(cov: Floats, lost: Bools) -> Floats:
    return np.where(lost[:, None] | lost, 0.0, cov)


def _is_negative(cov: Floats) -> bool:
    """Whether some combination of the parameters has a variance below zero, by more than rounding, in any units."""
    size = np.sqrt(np.abs(np.diag(cov)))
    size = np.where(size > 0.0, size, 1.0)
    found = symmetric_eigen(cov / np.outer(size, size))
    return found is not None and bool(found[0][0] < -1e-4 * found[0][-1])


_NOT_POSITIVE = words(
    'the covariance of kind "{kind}" is not positive semidefinite: a penalty outweighs the data. Quantities whose '
    + "variance would be negative have no band; "
    + either('`fit.with_errors("robust")`', "--errors robust")
    + " provides one."
)


def _words(hidden: Floats, fit: Any) -> str:
    """What the data do not tell, and what that means."""
    K = fit.theta.size
    along = f"{len(hidden)} directions of the parameters"
    if len(hidden) <= MOST_WORDS and not hidden[:, K:].any():
        along = describe_directions(hidden[:, :K], fit.reward_model.names, fit.feature_sizes)
    return f"the data say nothing about {along}; quantities that depend on it have no band."


def over_draws(title: str, function: Callable[[Floats, Floats], Any], doubts: Doubt, notes: list[str]) -> list[Any]:
    """`function(theta, psi)` for every draw of a bootstrap, in their order; draws without a value are left out."""
    theta, psi = np.asarray(doubts.theta), doubts.psi
    assert psi is not None
    pieces = np.array_split(np.arange(len(theta)), min(len(theta), 40))  # several draws each, so that starts are warm
    found: dict[int, list[Any]] = {}
    with Progress(title, doubts.progress, total=len(theta)) as bar:
        chunks = ((i, function, theta[piece], psi[piece]) for i, piece in enumerate(pieces))
        for i, results in each(_some_draws, chunks, doubts.jobs):
            found[i] = results
            bar.update(advance=len(pieces[i]))
    every = [result for i in sorted(found) for result in found[i]]
    good = [result for result in every if result is not None]
    if len(good) < len(every):
        notes.append(f"{len(every) - len(good)} draws are left out, because the value function does not exist there.")
    if len(good) < 2:
        raise InvalidInput(
            "bands",
            "at least two draws in which the value function exists",
            f"{len(good)}",
            remedy=f"Use {arg('bands', 'delta')}.",
        )
    if len(good) < FEW:
        notes.append(f"{len(good)} replications are {TOO_FEW}.")
    return good


def _some_draws(i: int, function: Callable[[Floats, Floats], Any], theta: Floats, psi: Floats) -> tuple[int, list[Any]]:
    results: list[Any] = []
    for one, other in zip(theta, psi, strict=True):
        try:
            results.append(function(one, other))
        except (ValueDoesNotExist, SolverFailed):
            results.append(None)
    return i, results
