"""NFXP = MCE-IRL, CCP and NPL: choices of π̃ (theory E1–E3), and nothing else that differs.

| method | π̃ |
|---|---|
| NFXP = MCE-IRL | π_θ, the soft optimum at every θ |
| CCP | π̂_E, estimated from the data once |
| NPL | π̂_E first, then π_θ of the last maximisation, until it settles or `updates` times |
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

from revealed.checks import require_count
from revealed.demonstrations import Demonstrations
from revealed.errors import InvalidOption
from revealed.estimation import Options, Run
from revealed.gates import floats_of
from revealed.goal_estimation import run_for
from revealed.labels import unknown
from revealed.mdp import MDP, Floats, require_mdp
from revealed.optimize import Search
from revealed.positions import require_by_name
from revealed.rewards.base import Reward, has_features, is_linear, require_reward
from revealed.voices import arg

MOST_UPDATES, FEW_UPDATES = 100, 10  # of NPL, unless told: with features, and where each maximisation is long
NEAR = 1e-7  # tolerance of a refit by Newton: its last step, once the rule is met, squares the error


def most_updates(reward: Reward, asked: int | None) -> int:
    """The number of updates of NPL at which it stops: as asked, or the default of the reward."""
    return asked or (MOST_UPDATES if has_features(reward) else FEW_UPDATES)


class Estimator:
    """A reward and options; `fit(mdp, demonstrations)` estimates. Use one of the four methods."""

    method: ClassVar[str]
    _own: ClassVar[tuple[str, ...]] = ()  # what it takes besides `Options`

    def __init__(self, reward: Reward, **options: Any) -> None:
        _require_known(type(self).__name__, options, self._own)
        require_reward(reward)
        self.reward, self.options = reward, Options(**options)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in Options.__dataclass_fields__:
            own = type(self).__name__
            raise AttributeError(f"an option is set as in {own}(reward, {name}=...), or later with_options({name}=...)")
        super().__setattr__(name, value)

    def fit(self, mdp: MDP, demonstrations: Demonstrations) -> Any:
        """Estimate the reward from the decisions observed on `mdp`; returns a `Fit`, or a `GoalFit` if trips have
        goals."""
        run = run_for(self.method, self.reward, self.options, mdp, demonstrations)
        require_by_name("start", self.options.start, run.reward.names, InvalidOption)
        fit = run.fit(self._search)
        return replace(fit, estimator=self.with_options(callback=None))

    def refit(self, mdp: MDP, demonstrations: Demonstrations, start: Floats, value: Floats | None = None) -> Any:
        """The same estimate on other data, quietly, from a θ that is near it and the value there, if it is known."""
        return self._again(mdp, demonstrations, start, value).fit(self._search)

    def _again(self, mdp: MDP, demonstrations: Demonstrations, start: Floats, value: Floats | None = None) -> Run:
        """A refit before it begins."""
        require_mdp(mdp)
        value = None if value is None else floats_of("value", value, (mdp.n_states,))
        newton = self.options.optimizer in ("auto", "newton") and is_linear(self.reward)
        tol = NEAR if newton and self.options.tol is None else self.options.tol
        options = replace(self.options, start=start, tol=tol, progress=False, callback=None)
        run = run_for(self.method, self.reward, options, mdp, demonstrations)
        run.value, run.again = value, True
        return run

    def with_options(self, **options: Any) -> Self:
        """The same estimator with some options changed."""
        _require_known("with_options()", options)
        other = copy(self)
        other.options = replace(self.options, **options)
        return other

    def _search(self, run: Run) -> Search:
        raise TypeError("use NFXP, MCEIRL, CCP or NPL")  # each says which π̃

    def __repr__(self) -> str:
        own = {k: v for k, v in vars(self).items() if k not in ("reward", "options")}
        given = own | {k: v for k, v in vars(self.options).items() if v is not Options.__dataclass_fields__[k].default}
        return f"{type(self).__name__}({self.reward!r}" + "".join(f", {k}={v!r}" for k, v in given.items()) + ")"


def _require_known(owner: str, options: dict[str, Any], own: tuple[str, ...] = ()) -> None:
    known = Options.__dataclass_fields__
    for name in options:
        if name not in known:
            raise unknown(owner, "option", name, (*known, *own), _meant(name))


def _meant(name: str) -> str | None:
    """The option that is called otherwise elsewhere, or where what is not an option belongs."""
    word = name.casefold().replace("_", "")
    meant = next((option for option, others in _ELSEWHERE.items() if word in others.split()), None)
    return _NO_OPTION.get(meant, f"Did you mean {meant}?") if meant else None


_ELSEWHERE = {
    "learning_rate": "lr eta stepsize alpha",
    "max_iter": "epochs nepochs niter niters maxiter maxiters maxiterations iterations numiter numiterations steps",
    "l2": "reg regularization regularisation regularizer penalty ridge lambda lam lamb weightdecay",
    "tol": "tolerance eps epsilon gtol ftol xtol rtol atol",
    "progress": "verbose verbosity disp display quiet showprogress progressbar",
    "start": "init initial theta theta0 x0 params params0 startparams start0",
    "optimizer": "optimiser method algorithm algo",
    "patience": "earlystopping niternochange",
    "discount": "discount gamma beta discountfactor",
    "seed": "seed randomstate rng",
    "updates": "updates k nupdates",
    "horizon": "horizon",
}
_NO_OPTION = {
    "discount": f"The discount belongs to the MDP: rv.MDP(transitions, {arg('discount', 0.95)}).",
    "seed": f"Estimation is deterministic; a network has its own seed: rv.NeuralReward(features, {arg('seed', 0)}).",
    "updates": f"Updates are those of NPL: rv.NPL(reward, {arg('updates', 3)}).",
    "horizon": "The horizon belongs to the MDP: mdp.unroll(horizon).",
}


class NFXP(Estimator):
    """Nested fixed point (Rust 1987) = maximum causal entropy IRL (Ziebart 2010): π̃ = π_θ (theory E1).

    Parameters
    ----------
    reward : `LinearReward`, `TabularReward`, `NeuralReward`, `TorchReward`, or anything with the same methods.
    weighting : "sample" (visit counts: maximum likelihood) or "occupancy" (the paper's algorithms).
    first_step : π̂_E for occupancy weighting, CCP and NPL: "frequency", "smoothed", "kernel", "logit", an instance
        from `rv.first_step`, or an (S, A) array. NFXP uses it with occupancy weighting or a start from CCP only.
    l2 : weight of the penalty (l2/2)‖θ‖² on the mean log likelihood; None means 0, except for a `NeuralReward`, which
        has a small default (its `usual_l2`, shown in the summary).
    optimizer : "auto", "newton" (linear rewards), "lbfgs", "adam".
    tol, patience : stop when the gradient's 2-norm is at most `tol` for `patience` iterations in a row
        (newton 1e-9, lbfgs 1e-6 or, for a `NeuralReward`, 1e-3, adam 1e-4 five times). Each parameter is measured by
        what it does to log-odds, so that the units of features do not matter. If the search would end too far
        from the maximum, it continues with a tenth of `tol`, unless you set `tol`.
    max_iter, learning_rate : maximum number of iterations; Adam's step size in those units (of Adam only).
    start : θ to start from (K,), or "ccp" for the CCP estimate (at γ = 1 there may be no value at zero; CCP and NPL
        begin there anyway).
    solver : "auto", "lu" or "krylov" for the linear systems.
    progress : None shows a bar on a terminal; True and False force it.
    callback : a function called with every iterate (`.iteration`, `.update`, `.theta`, `.reward`, `.policy`,
        `.objective`, `.gradient_norm`), to follow a search. Its return value is ignored, an exception ends the fit, and
        its time is included in `seconds`. The last iterate is the estimate, except that Newton takes one more step once
        the rule is met.
    """

    method = "NFXP"

    def _search(self, run: Run) -> Search:
        return run.maximise(run.own(), run.ccp_start() if run.from_ccp else run.start)


class MCEIRL(NFXP):
    """Maximum causal entropy IRL: `NFXP` under its other name, with the same estimates and options."""

    method = "MCE-IRL"


class CCP(Estimator):
    """Conditional choice probabilities (Hotz and Miller 1993): π̃ = π̂_E (theory E2). Options as for `NFXP`."""

    method = "CCP"

    def _search(self, run: Run) -> Search:
        return run.maximise(run.given(run.expert), run.start)


class NPL(Estimator):
    """Nested pseudo-likelihood (Aguirregabiria and Mira 2002): CCP, then π̃ ← π_θ after each maximisation (theory E3).

    `updates` is the number of maximisations: K gives the K-step estimator. By default they go on until π̃ no longer
    moves (`fit.settled`), at most 100 times for rewards with features and 10 for others. Options as for `NFXP`.
    """

    method = "NPL"
    _own = ("updates",)

    def __init__(self, reward: Reward, updates: int | None = None, **options: Any) -> None:
        super().__init__(reward, **options)
        if updates is not None:
            require_count("updates", updates, error=InvalidOption)
        self.updates = updates

    def _search(self, run: Run) -> Search:
        pi_tilde, log_pi_tilde, theta = run.expert, None, run.start
        run.asked_updates = self.updates is not None
        most = most_updates(self.reward, self.updates)
        while True:
            search = run.maximise(run.given(pi_tilde, log_pi_tilde), theta)
            policy, log_policy = run.improved(search.best)
            run.note_update(pi_tilde, policy, search)
            if run.trace.update >= most or run.resting or run.cycling or search.interrupted:
                return search
            if run.has_no_maximum(search.best):
                return search
            pi_tilde, log_pi_tilde, theta = policy, log_policy, search.best.theta
            run.trace.update += 1
