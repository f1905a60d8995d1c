"""One fit under way: options and inputs checked, weights ρ, searches, and the truth about how they ended.

What all four methods share. `estimators.py` below says where they differ: in π̃ alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from revealed.chain import Chain
from revealed.checks import require_count, require_flag, require_option, require_positive, require_vector
from revealed.coverage import coverage_notes
from revealed.curvature import can_use_hessian
from revealed.demonstrations import Demonstrations, require_demonstrations
from revealed.diagnosis import (
    Status,
    describe_directions,
    invisible_directions,
    nobody_chose,
    runaways,
    still_moving,
    still_rises,
    suspects,
    unseen_in_words,
    way_out,
    without,
)
from revealed.errors import InvalidDemonstrations, InvalidOption, SolverFailed, ValueDoesNotExist
from revealed.first_step import estimate_with_notes, require_first_step
from revealed.fit import Fit
from revealed.linear_solvers import SOLVERS, Work
from revealed.logit_rows import weighted_log
from revealed.matching import match_labels, name_alike, require_estimable
from revealed.mdp import MDP, Floats, require_mdp
from revealed.objective import Case, Evaluation, Objective, require_known
from revealed.optimize import OPTIMIZERS, Iterate, Search, Settings, Trace, is_near, maximise
from revealed.pi_tilde import GivenPolicy, OwnPolicy
from revealed.positions import by_parameter, labelled
from revealed.progress import Progress
from revealed.rewards.base import Reward, align_reward, lift_reward, reward_table, start_of
from revealed.voices import Written, arg, either, named, shown, words

AT_REST, SETTLED = 1e-9, 1e-7  # changes of choice probabilities: at which NPL stops, and which count as settled
HELD = 1e-6  # nats, in the whole log likelihood: a penalty that costs less holds nothing
CIRCLE = 9  # updates of NPL, over which a π̃ that comes no closer to rest circles
HARDLY = 1e-2  # standard errors that estimates may have left to go once the updates are used up


@dataclass(frozen=True)
class Options:
    """What all methods share; see `NFXP` for their meaning."""

    weighting: str = "sample"
    first_step: Any = "auto"
    l2: Any = None  # none, unless the reward has a penalty of its own (`usual_l2`), as networks do
    tol: float | None = None
    max_iter: int | None = None
    patience: int | None = None
    learning_rate: float = 0.01
    start: Any = None
    optimizer: str = "auto"
    solver: str = "auto"
    progress: bool | None = None
    callback: Callable[[Iterate], object] | None = None

    def __post_init__(self) -> None:
        for name, offered in (
            ("weighting", ("sample", "occupancy")),
            ("optimizer", OPTIMIZERS),
            ("solver", SOLVERS),
        ):
            require_option(name, getattr(self, name), offered)
        for name in ("l2", "tol", "learning_rate"):
            if getattr(self, name) is not None or name == "learning_rate":
                number = require_positive(name, getattr(self, name), zero=name == "l2")
                object.__setattr__(self, name, number)
        for name in ("max_iter", "patience"):
            if getattr(self, name) is not None:  # else the optimiser's own
                require_count(name, getattr(self, name), error=InvalidOption)
        require_first_step(self.first_step)
        if self.progress is not None:
            require_flag("progress", self.progress)
        if self.callback is not None and not callable(self.callback):
            raise InvalidOption("callback", "a function of one iterate", shown(self.callback))


class Run:
    """One fit under way: the checked inputs, the objective's weights, the trace, and what NPL's updates did."""

    usual_step = "frequency"  # the first step unless told
    again = False  # whether this is one of many refits, whose notes nobody reads

    def __init__(self, method: str, reward: Reward, options: Options, mdp: MDP, demos: Demonstrations) -> None:
        _require_types(mdp, demos)
        demos = match_labels(demos, mdp)
        mdp = name_alike(mdp, demos)
        self.method, self.options, self.mdp = method, self._settle(options, reward, demos), mdp
        self.demos = demos.lift(mdp)
        self.impossible = require_estimable(mdp, self.demos)
        reward = _named(align_reward(reward, mdp), mdp)
        self.reward = lift_reward(reward, mdp)
        self.reward_model = reward
        self.from_ccp = isinstance(options.start, str) and options.start == "ccp"
        self.start = _as_start(None if self.from_ccp else options.start, self.reward)
        self.work = Work()
        self._born = time.perf_counter()
        self.moves: list[float] = []
        self.paths: list[Floats] = []  # θ after each update of NPL
        self.asked_updates = False  # whether the user chose how many
        self.earlier: list[Floats] = []
        self.iterations = 0
        self._expert: Any = None
        self._expert_notes: tuple[str, ...] = ()
        self.way_out: Floats | None = None  # along which weights run away
        self.ran_away: bool | None = None  # whether they do, where a saved fit tells
        self.value: Floats | None = None  # of a similar problem, where one is known

    def _settle(self, options: Options, reward: Any, demos: Demonstrations) -> Options:
        """The options with what is decided by the data and the reward."""
        auto = isinstance(options.first_step, str) and options.first_step == "auto"
        step = self.usual_step if auto else options.first_step
        own = reward.usual_l2(demos.n_decisions) if hasattr(reward, "usual_l2") else 0.0
        self.usual_l2 = options.l2 is None and own > 0.0
        return replace(options, first_step=step, l2=own if options.l2 is None else options.l2)

    @property
    def expert(self) -> Any:
        """π̂_E, estimated once."""
        if self._expert is None:
            found = estimate_with_notes(self.mdp, self.demos.counts, self.options.first_step, self.reward)
            self._expert, self._expert_notes = found
        return self._expert

    @property
    def expert_notes(self) -> tuple[str, ...]:
        """What to know of π̂_E, where it was asked for."""
        return self._expert_notes

    def rho(self) -> Any:
        """The expert's weights: visits (theory O2), or occupancy under π̂_E times π̂_E (theory O3)."""
        if self.options.weighting == "sample":
            return self.demos.weights
        p0 = self.mdp.initial
        if p0 is None:
            starts = self.demos.starts
            if starts.sum() == 0:
                python = "Pass MDP(initial=...), or from_counts(counts, starts=...)."
                raise InvalidDemonstrations.conflict(
                    "weighting",
                    "by occupancy requires a start distribution, and the data have no start states",
                    remedy=either(python, "Use --weighting sample."),
                )
            p0 = starts / starts.sum()
        chain = Chain(self.mdp, labelled(self.expert, self.mdp), self.options.solver, work=self.work)
        return np.maximum(chain.occupancy(labelled(p0, self.mdp)), 0.0)[:, None] * self.expert

    def own(self) -> Any:
        """π̃ = π_θ."""
        return OwnPolicy(self.mdp, self.options.solver, self.work, self.value)

    def given(self, pi_tilde: Any, log_pi_tilde: Any = None) -> Any:
        """π̃ as given; its factorisation is made here."""
        return GivenPolicy(self.mdp, pi_tilde, log_pi_tilde, self.options.solver, self.work)

    def ccp_start(self) -> Floats:
        """The CCP estimate, where NFXP may start; its iterations count as update 0."""
        self.trace.update = 0
        theta = self.maximise(self.given(self.expert), self.start).best.theta
        self.trace.update = 1
        return theta

    def make_objective(self, rho: Any, pi_tilde: Any) -> Objective:
        return Objective(self.reward, [Case(self.mdp, rho, pi_tilde)], self.options.l2)

    def maximise(self, pi_tilde: Any, start: Floats) -> Search:
        self.objective = self.make_objective(self._rho, pi_tilde)
        found = maximise(self.objective, start, self._settings(), self.trace)
        self.iterations += found.iterations
        if found.iterations:
            self.earlier.append(found.earlier)
        return found

    def look_again(self, theta: Floats, pi_tilde: Any) -> Evaluation:
        """The objective at an estimate that was found before."""
        self._rho = self.rho()
        self.objective = self.make_objective(self._rho, pi_tilde)
        return self.objective.at(theta)

    def has_ended(self, best: Evaluation, slack: float) -> bool:
        """Whether a search may end here, its tolerances taken so many times as wide."""
        return is_near(best, self.rule, slack)

    @property
    def rule(self) -> Settings:
        """How this objective is searched."""
        return self._settings().resolved(self.objective)

    def rehearse(self) -> None:
        """Make ready for a search that nobody watches."""
        self._rho, self.trace = self.rho(), Trace(Progress(self.method, False), self.work)

    def hardly_moves(self, best: Evaluation) -> bool:
        """Whether a maximum of the likelihood is as near as it has to be for an NPL that has settled (theory E4)."""
        step = np.linalg.lstsq(best.information, best.gradient, rcond=None)[0]
        return float(step @ best.gradient) * best.objective.total <= (2.0 * HARDLY) ** 2

    def _settings(self) -> Settings:
        o = self.options
        return Settings(o.optimizer, o.tol, o.max_iter, o.patience, o.learning_rate)

    def judged(self, best: Evaluation) -> str:
        """The code of a search that ended here (theory I1, I2), whatever NPL's updates did."""
        if self.has_no_maximum(best):
            return "separated"
        if self.options.l2 > 0.0 or not can_use_hessian(self.objective):
            return "converged"
        hidden = self._without_invisible(Search(best, True, "", 0, best.theta), [])[1]
        return "unidentified" if hidden else "converged"

    def fit(self, search: Callable[[Run], Search]) -> Fit:
        self._rho = self.rho()
        self._require_weight(self._rho.sum())
        with Progress(self.method, self.options.progress) as bar:
            self.trace = Trace(bar, self.work, self.options.callback)
            found = search(self)
            try:
                best, status = self.diagnose(found)
                self.require_known(best)
            except (SolverFailed, ValueDoesNotExist) as problem:
                best, status = found.best, Status("inner_solve_failed", problem.message)
        return self._result(best, status)

    def require_known(self, best: Evaluation) -> None:
        """Raise where float64 cannot tell the choices at the estimate (theory B6); most parts did so when made."""
        for part in best.parts:
            if hasattr(part, "doubt"):
                require_known(part)

    def _require_weight(self, total: float) -> None:
        if not total > 0.0:
            raise InvalidDemonstrations.impossible(
                "no decision has any weight: every start is terminal", argument="weighting"
            )

    def improved(self, best: Evaluation) -> tuple[Any, Any]:
        """π_θ and log π_θ: the next π̃ of NPL."""
        return best.parts[0].policy, best.parts[0].log_policy

    def note_update(self, before: Any, after: Any, search: Search) -> None:
        """How far π̃ moved in this update of NPL; a maximisation that did not get to its end does not count as rest."""
        self.moves.append(self._distance(before, after) if search.reached else np.inf)
        self.paths.append(search.best.theta)

    def _distance(self, before: Any, after: Any) -> float:
        return float(np.abs(after - before).max(initial=0.0))

    def runs_away(self, best: Evaluation) -> bool:
        """Whether weights run away (theory I2), or would but for the penalty: judged without it."""
        travel = [best.theta - earlier for earlier in self.earlier[-3:]] + [best.theta]
        plain = self.objective.without_penalty()
        point = best if self.options.l2 == 0.0 else plain.at(best.theta)
        self.way_out = None if point.problem else way_out(plain, point, suspects(point, travel))
        return self.way_out is not None

    def has_no_maximum(self, best: Evaluation) -> bool:
        """Whether weights run away and no penalty stops them, or one that is too small to have done so yet."""
        if self.ran_away is not None:
            return self.ran_away
        if self.options.l2 == 0.0:
            return self.runs_away(best)
        held = self.is_held(best)
        if (held and not still_moving(best)) or not self.runs_away(best) or self.way_out is None:
            return False
        return not held or can_use_hessian(self.objective) or still_rises(best, self.way_out)

    def surely_has_maximum(self, best: Evaluation) -> bool:
        """Whether the weights do not run away, whichever way the search came: it has plainly come to rest here."""
        penalised = self.options.l2 > 0.0
        return not still_moving(best) and not self.has_no_maximum(best) and (not penalised or self.is_held(best))

    def is_held(self, best: Evaluation) -> bool:
        """Whether the penalty is worth so much that it decides where the weights stay."""
        return 0.5 * self.options.l2 * float(best.theta @ best.theta) * self.objective.total >= HELD

    @property
    def resting(self) -> bool:
        """Whether π̃ no longer moves: there is nothing left to update."""
        return bool(self.moves) and self.moves[-1] <= AT_REST

    @cached_property
    def settled(self) -> bool:
        """Whether NPL has settled: π̃ hardly moves, or the estimates have but a small part of a standard error to go. Of
        a number of updates that was asked for, the estimator is that of these updates unless nothing moves."""
        if not self.moves or self.moves[-1] <= SETTLED:
            return bool(self.moves)
        return not self.asked_updates and self._left_to_go() <= HARDLY

    def _left_to_go(self) -> float:
        """How far the estimates are from where the updates lead, in standard errors; ∞ where that cannot be told.

        Updates shrink the distance by a constant rate in the end, so that moves d and then rd leave r²d/(1 − r) to go.
        A step Δθ is √(Δθ'IΔθ) standard errors long at least, with I the information of all decisions.
        """
        if len(self.paths) < 3 or not np.isfinite(self.moves[-1]) or not can_use_hessian(self.objective):
            return np.inf
        information = self.objective.at(self.paths[-1]).information * self.demos.counts.sum()
        before, last = (b - a for a, b in pairwise(self.paths[-3:]))
        first, second = (float(np.sqrt(max(d @ information @ d, 0.0))) for d in (before, last))
        rate = second / first if first > 0.0 else 0.0
        return second * rate / (1.0 - rate) if rate < 1.0 else np.inf

    @property
    def cycling(self) -> bool:
        """π̃ has not come closer to rest over the last eight updates: it circles, or runs away."""
        window = self.moves[-CIRCLE:]
        return len(window) == CIRCLE and min(window[1:]) > 0.99 * window[0] and window[-1] > 1e-6

    def diagnose(self, found: Search) -> tuple[Evaluation, Status]:
        """The truth about a search (theory I1, I2): what makes an estimate meaningless, then what qualifies it."""
        told = self.impossible, getattr(self.reward_model, "left_out", "")
        notes = [_NO_CHOICE] if nobody_chose(found.best) else []
        notes += [note for note in (*told, *getattr(self.reward_model, "notes", ())) if note]
        notes += [_OWN_PENALTY.format(l2=self.options.l2)] if self.usual_l2 else []
        notes += [*self.expert_notes, *self._transition_notes(), *self.demos.notes]
        notes += coverage_notes(self)
        if found.departures:
            notes.append(LEFT)
        if found.interrupted:
            message = found.reason + "; the best point so far is kept."
            return found.best, Status("iteration_limit", message, tuple(notes), interrupted=True)
        if self.has_no_maximum(found.best):
            return found.best, Status("separated", self._separated(found.best), tuple(notes))
        if self.options.l2 > 0.0 and not self.usual_l2 and self.runs_away(found.best):
            notes.append(HELD_BY.format(which=self._which(found.best), l2=self.options.l2))
        best, hidden = self._without_invisible(found, notes)
        code, message = self._verdict(found, hidden, notes)
        return best, Status(code, message, tuple(notes))

    def _separated(self, best: Evaluation) -> str:
        l2 = self.options.l2
        text = _SEPARATED if l2 == 0.0 else _NOT_HELD.format(l2=l2) + words(f" ({_larger(l2, 1e-3)}), {_LESS}")
        return text.format(which=self._which(best)) + ("" if self.moves_with_theta else _PSEUDO)

    def _which(self, best: Evaluation) -> str:
        """The weights that run away, where they can be named."""
        names = () if self.way_out is None else runaways(best, self.way_out)
        return f" ({', '.join(names)})" if names else ""

    def _transition_notes(self) -> tuple[str, ...]:
        """What to know of transitions that were estimated: the pairs never seen, and the rule for them."""
        model = self.mdp.base or self.mdp
        return () if model.estimated is None else model.estimated.notes_on(model.feasible)

    def _without_invisible(self, found: Search, notes: list[str]) -> tuple[Evaluation, str]:
        """The estimate less what choices cannot see of a linear reward, and that in words; empty where they see all."""
        if not can_use_hessian(self.objective):
            if self.options.l2 == 0.0:
                notes += self.unseen(found)
            return found.best, ""
        if not found.reached:
            return found.best, ""
        directions = invisible_directions(found.best)
        words = describe_directions(directions, self.reward.names, found.best.size)
        if not words or self.options.l2 > 0.0:
            return found.best, words
        smaller = self.objective.at(without(found.best.theta, directions))
        if smaller.value >= found.best.value - 1e-12 * (1.0 + abs(found.best.value)):
            return smaller, words
        notes.append(_NEARLY.format(words=words))  # choices do see it, if hardly
        return found.best, ""

    def unseen(self, found: Search) -> list[str]:
        """Notes on what choices cannot see of a reward without features."""
        return unseen_in_words(found)

    def _verdict(self, found: Search, hidden: str, notes: list[str]) -> tuple[str, str]:
        """Code and message for a search that has not run away."""
        if found.failed:
            return "inner_solve_failed", found.reason + words(f". Try {_LU}{_larger(self.options.l2, 1e-4)}.")
        if not found.reached:
            return "iteration_limit", found.reason + ". " + self._quicker()
        if self.cycling:
            return "cycling", _CYCLING.format(move=self.moves[-1])
        if self.moves and not self.settled and not self.asked_updates:
            return "iteration_limit", _UNSETTLED.format(move=self.moves[-1], k=len(self.moves))
        if hidden and self.options.l2 == 0.0 and _NO_CHOICE in notes:
            notes.remove(_NO_CHOICE)
            return "unidentified", _NO_CHOICE
        if hidden and self.options.l2 == 0.0:
            return "unidentified", _UNIDENTIFIED.format(words=hidden)
        if hidden:
            notes.append(f"choices do not identify {hidden}; there the estimate is determined by the penalty alone.")
        if found.iterations == 0 and not getattr(self.reward, "linear", False) and not self.moves:
            notes.append("the search ended where it started: is the start a saddle (a network with zero weights)?")
        return "converged", found.reason + self._settled_words() + "."

    def _quicker(self) -> str:
        """Advice that helps a search converge: a faster optimizer, a looser tolerance, a larger penalty."""
        l2, tol = self.options.l2, self._settings().resolved(self.objective).tol or 0.0
        kinks = not getattr(self.reward, "smooth", True)
        adam = self.options.optimizer == "adam" or (kinks and self.options.optimizer == "auto")
        quicker = ("Adam is slow: " if adam else "") + (_SMOOTHER if kinks else _QUICKER if adam else "")
        if kinks:
            both = f"{_larger(l2, 0.02)} and {arg('tol', max(10.0 * tol, 0.01))}"
            return words(f"{quicker[:1].upper()}{quicker[1:]}For a network with kinks (ReLU), set both {both}.")
        return words(f"{quicker}Raise {named('max_iter')}, loosen {named('tol')}, or set {_larger(l2, 1e-4)}.")

    @property
    def moves_with_theta(self) -> bool:
        return all(case.moves for case in self.objective.cases)

    def _settled_words(self) -> str:
        k = len(self.moves)
        if k > 1 and self.moves[-1] <= SETTLED:
            return f"; π̃ settled after {k} updates"
        if self.moves and not self.settled:
            return f"; {k}-step NPL, as requested: π̃ moved by {self.moves[-1]:.1e} in the last update"
        left = f"; estimates are within {HARDLY:g} standard errors of their limit after {k} updates"
        return left if k > 1 else ""

    def _result(self, best: Evaluation, status: Status) -> Any:
        part = best.parts[0]
        behaviour = {name: getattr(part, name) for name in ("policy", "log_policy", "value", "q", "pi_tilde")}
        llf = weighted_log(self.demos.counts, part.log_policy)
        return Fit(**behaviour, llf=llf, **self._told(best, status))

    def _told(self, best: Evaluation, status: Status) -> dict[str, Any]:
        """What every result tells, whether trips have goals or not."""
        return {
            "method": self.method,
            "theta": best.theta,
            "reward": reward_table(self.reward, best.theta, self.mdp),
            "objective": best.value,
            "gradient_norm": best.gradient_norm,
            "units": None if best.objective.units is None else np.asarray(best.objective.units),
            "status": status,
            "settled": self.settled if self.moves else None,
            "updates": self.trace.update,
            "iterations": self.iterations,
            "seconds": time.perf_counter() - self._born,
            "mdp": self.mdp,
            "demonstrations": self.demos,
            "reward_model": self.reward_model,
            "options": {n: getattr(self.options, n) for n in Options.__dataclass_fields__ if n != "callback"},
            "rows": self.trace.rows,
            "own_policy": self.moves_with_theta,
        }


def _named(reward: Any, mdp: MDP) -> Any:
    """One weight per state is called as the state is, where states have labels."""
    labels = (mdp.base or mdp).state_labels
    return reward.named(labels) if labels is not None and hasattr(reward, "named") else reward


def _require_types(mdp: Any, demos: Any) -> None:
    require_mdp(mdp, other=demos, call="fit(mdp, demonstrations)")
    require_demonstrations("demonstrations", demos)


def _as_start(start: Any, reward: Reward) -> Floats:
    if start is None:
        return start_of(reward)
    expected = f'a sequence of {reward.n_params} finite numbers, or "ccp"'
    given = by_parameter("start", start, reward.names, InvalidOption)
    return require_vector("start", given, reward.n_params, expected, InvalidOption)


def _larger(l2: float, least: float) -> str:
    """A penalty to try, larger than the one in use."""
    return arg("l2", float(f"{max(10.0 * l2, least):.1g}"))


_LU = either('solver="lu", or ', "")
_SEPARATED = words(
    "the likelihood has no maximum: it keeps rising as some weights grow{which}, because every observed choice that "
    f"depends on them points in the same direction. Add a penalty ({arg('l2', 1e-3)}), more data, or fewer features."
)
_OWN_L2 = arg("l2", Written("{l2:.3g}"))
_NOT_HELD = words(
    "the likelihood has no maximum: it keeps rising as some weights grow{{which}}, and the penalty "
    f"{_OWN_L2} is too small to bound them. Use a larger one"
)
_LESS = "more data, or fewer features."
HELD_BY = words(
    "without the penalty the likelihood has no maximum: some weights{which} are held by "
    f"{_OWN_L2} alone. They and their standard errors reflect the penalty more than the data."
)
LEFT = "the search passed a stationary point that is not a maximum; the estimate is the maximum beyond it."
_NO_CHOICE = words(
    "there was nothing to choose: every state with decisions offers a single action, which says nothing about the "
    f"reward. {either('Check `feasible`. If', 'If')} other actions were available but never chosen, set "
    f"{arg('unseen', 'stay')}."
)
_SMOOTHER = f"a smooth network ({arg('activation', 'tanh')}) with {arg('optimizer', 'lbfgs')} takes fewer steps. "
_QUICKER = f"{arg('optimizer', 'auto')} takes fewer steps. "
_OWN_PENALTY = words(
    f"the penalty is the network's default, {arg('l2', Written('{l2:.3g}'))} for this number of decisions; set "
    f"{arg('l2')} to change it, 0 for none."
)
_NEARLY = "features are nearly collinear along {words}: interpret these weights with care."
_PSEUDO = " This is the likelihood under the estimated π̃; NFXP's may have a maximum."
_UNIDENTIFIED = (
    "choices do not identify {words}; the minimum-norm estimate is reported. Drop a feature, or interpret only "
    "differences."
)
_UNSETTLED = words(
    "π̃ still moved by {move:.1e} in update {k}. Set " + arg("updates") + " to a larger number, or use NFXP."
)
_CYCLING = words(
    f"π̃ does not settle (it moved by {{move:.1e}} in the last update). Use NFXP, or another {named('first_step')}."
)
