"""What a fit says about its own precision: standard errors of five kinds, intervals, tests, identification.

The numbers come from `inference.py`, `bootstrap.py` and `hypotheses.py`, which load when first used; here they are
labelled and kept.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from revealed.checks import frozen, require_flag, require_option, require_probability
from revealed.errors import InvalidOption
from revealed.labels import unknown
from revealed.mdp import Floats
from revealed.objective import Case, Objective
from revealed.pi_tilde import GivenPolicy, OwnPolicy
from revealed.rewards.base import lift_reward
from revealed.voices import arg, either, marked, words

if TYPE_CHECKING:
    import pandas as pd

    from revealed.agent_groups import AgentGroups
    from revealed.bootstrap import Bootstrap, Replication
    from revealed.hypotheses import TestResult
    from revealed.identification import Identification
    from revealed.inference import Evidence
    from revealed.influence import Influence
    from revealed.reestimation import Reestimation

NEAR_ENOUGH = 1e-4  # the loosest tolerance of the optimisers' own: a gradient below it is that of a maximum
_ANEW = "which re-estimates the transitions."
_THETA_ALONE = "The covariance of θ alone: fit.transition_bse has the standard errors of the transitions' parameters."
BOOTSTRAP = {"reps": 400, "seed": 0, "jobs": None, "progress": None}


class Uncertain:
    """The part of a `Fit` that measures its uncertainty. `chosen` is what `with_errors` chose; `kept`, its
    bootstraps."""

    theta: Any
    mdp: Any
    demonstrations: Any
    reward_model: Any
    options: Any
    pi_tilde: Any
    own_policy: Any
    settled: Any
    status: Any
    estimator: Any
    gradient_norm: Any
    value: Any
    chosen: Any
    groups: Any
    kept: Any

    @property
    def near_value(self) -> Floats | None:
        """The value at the estimate, from which a refit may begin."""
        return self.value

    @property
    def errors(self) -> tuple[str, bool]:
        """The kind of covariance behind `bse`, intervals and the summary, and whether it includes sampling error in T.

        Joint errors that have no formula come from a bootstrap; `errors_note` says so.
        """
        return self._offered(*self._asked)

    @property
    def _asked(self) -> tuple[str, bool]:
        return (self.usual_errors, False) if self.chosen is None else self.chosen[:2]

    @property
    def usual_errors(self) -> str:
        """The kind of errors where none was chosen."""
        return "hessian" if self.demonstrations.visit_discount == 1.0 else "cluster"

    @property
    def errors_note(self) -> str:
        """Why the errors come from a bootstrap although other ones were requested; empty otherwise."""
        return self._why_resampled(*self._asked)

    def _offered(self, kind: str, joint: bool) -> tuple[str, bool]:
        return ("bootstrap" if self._why_resampled(kind, joint) else kind), joint

    def _why_resampled(self, kind: str, joint: bool) -> str:
        """Joint errors without a formula come from a bootstrap, where one estimates the transitions anew."""
        gap = self.joint_gap(kind) if joint else ""
        if not gap or not self.resamples_transitions:
            return ""
        return words(
            f'joint errors of kind "{kind}" have no formula for {gap}: these come from a bootstrap over agents, {_ANEW}'
        )

    def joint_gap(self, kind: str) -> str:
        """For what joint errors of a kind have no formula here; empty where they have one."""
        from revealed.inference import KINDS, no_formula

        require_option("kind", kind, KINDS)
        if kind == "bootstrap" or self.mdp.estimated is None:
            return ""
        if self.demonstrations.goal_states is not None:
            return "trips with goals"
        return no_formula(kind, self.mdp.estimated, self.reward_model, self.mdp.feasible.size)

    @property
    def resamples_transitions(self) -> bool:
        """Whether a bootstrap re-estimates the transitions: they come from the agents that it draws."""
        found, demos = self.mdp.estimated, self.demonstrations
        return found is not None and found.ids == demos.ids and demos.n_agents > 1 and self.estimator is not None

    def with_errors(self, kind: str, joint: bool = False, by: Any = None, **bootstrap: Any) -> Self:
        """The same fit whose standard errors, intervals, tests and summary are of another kind.

        "hessian" inverts the observed information, "opg" the outer product of the observations' scores, "robust" is
        their sandwich, "cluster" the sandwich over agents, "bootstrap" resamples agents (`reps`, `seed`, `jobs`).
        `joint` includes the sampling error of transitions that were estimated from the same data; where that has no
        formula (a smoothed T, trips with goals, "opg" with very many parameters of T), by a bootstrap, as `errors_note`
        then says. `by` names a column that was kept (`keep=`), or is a dict or Series from ids to groups, or a group
        per agent: these groups are then the clusters, or what is resampled.
        """
        self._require_kind(kind, joint)
        self._require_drawn("with_errors", bootstrap, kind, joint)
        if bootstrap:
            from revealed.bootstrap import check_options

            check_options(**bootstrap)
        groups = self._groups(kind, by)
        return replace(self, chosen=(kind, joint, bootstrap), groups=groups)  # pyright: ignore[reportArgumentType]

    def _require_drawn(self, where: str, given: dict[str, Any], kind: str, joint: bool) -> None:
        """Options of a bootstrap are known, and there is one."""
        odd = next((name for name in given if name not in BOOTSTRAP), None)
        if odd is not None:
            raise unknown(f"{where}()", "option", odd, tuple(BOOTSTRAP))
        if given and self._offered(kind, joint)[0] != "bootstrap":
            raise InvalidOption.conflict(next(iter(given)), f"requires `{arg('kind', 'bootstrap')}`")

    def _groups(self, kind: str, by: Any) -> AgentGroups | None:
        from revealed.agent_groups import group_agents

        if by is None:
            return None
        if kind not in ("cluster", "bootstrap"):
            rule = f"requires `{arg('kind', 'cluster')}` or `{arg('kind', 'bootstrap')}`"
            raise InvalidOption.conflict("by", rule, remedy=f"Here it is {arg('kind', kind)}.")
        return group_agents(self.demonstrations, by)

    @property
    def group_key(self) -> str:
        """What tells results of one grouping from those of another; empty where agents count by themselves."""
        return "" if self.groups is None else self.groups.key

    def cov_params(self, kind: str | None = None, joint: bool | None = None, **bootstrap: Any) -> pd.DataFrame:
        """The covariance of the estimates; with `joint=True` the transitions' parameters come after θ, but where they
        are more than 500: it is then that of θ alone, their noise counted.

        The kinds are those of `with_errors`; by default what `errors` says. NaN marks what the data do not identify.
        `.attrs["note"]` has a note, if there is one.
        """
        import pandas as pd

        asked = self._resolved(kind, joint)
        self._require_drawn("cov_params", bootstrap, *asked)
        matrix = self._matrix(*self._offered(*asked), bootstrap)
        names = list(self.reward_model.names)
        names += list(self.mdp.estimated.names) if len(matrix) > len(names) else []
        frame = pd.DataFrame(matrix, index=names, columns=names)
        notes = [self._why_resampled(*asked), _THETA_ALONE if asked[1] and self._is_wide else ""]
        if any(notes):
            frame.attrs["note"] = words(" ".join(marked(note) for note in notes if note))
        return frame

    @property
    def _is_wide(self) -> bool:
        """Whether the transitions have more parameters than are written into a matrix."""
        from revealed.inference import too_wide

        return too_wide(self.mdp)

    @property
    def transition_bse(self) -> pd.Series:
        """Standard errors of the transitions' parameters, of the kind that `errors` names."""
        import pandas as pd

        kind, found = self._kind(self._asked[0], True)[0], self.mdp.estimated
        if kind == "bootstrap":
            drawn = self.drawn.psi
            variance = drawn.var(axis=0, ddof=1) if drawn.shape[1] else np.full(found.psi.size, np.nan)
        elif kind == "opg":
            variance = np.diag(self._matrix(kind, True, {}))[self.theta.size :]
        else:
            variance = self.influence(kind).of_psi
        bse = np.sqrt(np.where(variance >= 0.0, variance, np.nan))
        return pd.Series(bse, index=list(found.names), name="std err")

    def influence(self, kind: str) -> Influence:
        """The covariance of θ and the transitions' parameters together, without writing it out."""
        from revealed.inference import KINDS

        require_option("kind", kind, KINDS)
        key = ("influence", kind)
        if key not in self.kept:
            self.evidence.require(kind, joint=True)
            found = self.evidence.influence(kind)
            nothing = {"own": np.full_like(found.own, np.nan), "lost": np.ones_like(found.lost)}
            self.kept[key] = found if self.at_maximum else replace(found, **nothing)
        return self.kept[key]

    def wide_noise(self, kind: str, joint: bool) -> Influence | None:
        """The same where joint errors count more parameters than a matrix holds; None elsewhere."""
        kind, joint = self._kind(kind, joint)
        return self.influence(kind) if joint and kind != "bootstrap" and self._is_wide else None

    def covariance(self, kind: str | None = None, joint: bool | None = None) -> Floats:
        """(K, K): the covariance of θ alone, as an array."""
        kind, joint = self._kind(kind, joint)
        K = self.theta.size
        return self._matrix(kind, joint, {})[:K, :K]

    def partial_covariance(self, kind: str | None = None, joint: bool | None = None) -> tuple[Floats, Floats]:
        """(M, M) and (n, M): the covariance with numbers also for parameters that hide behind directions in which
        choices do not change, and these directions. A quantity with slope g that does not move along them has the
        variance g'Cg, although the single parameters have none."""
        kind, joint = self._kind(kind, joint)
        matrix = self._matrix(kind, joint, {}, blank=False)
        return matrix, self.evidence.blind(len(matrix) > self.theta.size)

    def _kind(self, kind: str | None, joint: bool | None) -> tuple[str, bool]:
        return self._offered(*self._resolved(kind, joint))

    def _resolved(self, kind: str | None, joint: bool | None) -> tuple[str, bool]:
        """What is asked for: where that is not said, what `with_errors` chose."""
        chosen, together = self._asked
        joint = (together if kind is None else False) if joint is None else joint
        kind = chosen if kind is None else kind
        self._require_kind(kind, joint)
        return kind, joint

    def _require_kind(self, kind: str, joint: bool) -> None:
        from revealed.inference import KINDS, require_estimated

        require_option("kind", kind, KINDS)
        require_flag("joint", joint)
        if kind != "bootstrap" and self.options["weighting"] != "sample":
            other = f"`{arg('weighting', 'occupancy')}`, whose objective is not a likelihood"
            what = f"`{arg('kind', kind)}` cannot be combined with {other}"
            remedy = either('Use fit.with_errors("bootstrap").', "Use --errors bootstrap.")
            raise InvalidOption.impossible(what, None, remedy, "kind")
        if joint:
            require_estimated(self.mdp.estimated)

    def _matrix(self, kind: str, joint: bool, bootstrap: dict[str, Any], blank: bool = True) -> Floats:
        if kind == "bootstrap":
            found = self.bootstrap(**bootstrap) if bootstrap else self.drawn
            written = joint and not self._is_wide
            draws = np.hstack([found.theta, found.psi]) if written else found.theta
            matrix = np.atleast_2d(np.cov(draws, rowvar=False))
            return self.evidence.blanked(matrix) if blank else matrix
        key = ("covariance", kind, joint, blank, self.group_key)
        if key not in self.kept:
            matrix = self.evidence.covariance(kind, joint, blank)
            self.kept[key] = matrix if self.at_maximum else np.full_like(matrix, np.nan)
        return self.kept[key].copy()

    @property
    def at_maximum(self) -> bool:
        """Whether the last search came to its end, so that errors mean something: also where choices do not identify
        all parameters, and for NPL that was stopped after its updates, each of which was maximised."""
        if self.status.code in ("converged", "unidentified"):
            return True
        stopped = self.status.code == "iteration_limit" and self.settled is False
        return stopped and self.gradient_norm <= (self.options["tol"] or NEAR_ENOUGH)

    @cached_property
    def evidence(self) -> Evidence:
        """Scores and information at the estimate; of a settled NPL, those of the likelihood (theory E4)."""
        from revealed.inference import Evidence

        solver = self.options["solver"]
        own = self.own_policy or bool(self.settled)
        pi_tilde = OwnPolicy(self.mdp, solver) if own else GivenPolicy(self.mdp, self.pi_tilde, solver=solver)
        demos = self.demonstrations
        case = Case(self.mdp, demos.weights, pi_tilde)
        point = Objective(lift_reward(self.reward_model, self.mdp), [case], self.options["l2"]).at(self.theta)
        if point.problem is not None:
            raise point.problem
        even = demos.visit_discount == 1.0
        return Evidence(point, demos.weights_by_agent, demos.ids, even, self.groups, demos.agent_weights)

    @property
    def feature_sizes(self) -> Floats | None:
        """(K,): how large ∂Q/∂θ is, by which parameters in other units compare; None for rewards without features."""
        point = self.evidence.point
        return frozen(point.size) if point.objective.has_hessian else None

    def __getstate__(self) -> dict[str, Any]:
        """Without the evidence, whose factorisation cannot be pickled; it is made again when asked for."""
        return {name: value for name, value in vars(self).items() if name != "evidence"}

    def _series(self, values: Floats, name: str) -> pd.Series:
        import pandas as pd

        return pd.Series(values, index=list(self.reward_model.names), name=name)

    @property
    def bse(self) -> pd.Series:
        """Standard errors, of the kind that `errors` names."""
        variance = np.diag(self.covariance())
        return self._series(np.sqrt(np.where(variance >= 0.0, variance, np.nan)), "std err")

    @property
    def tvalues(self) -> pd.Series:
        """z statistics: estimates divided by their standard errors."""
        with np.errstate(divide="ignore", invalid="ignore"):  # a parameter that a penalty alone decides has none
            return self._series(self.theta / self.bse.to_numpy(), "z")

    @property
    def pvalues(self) -> pd.Series:
        """Two-sided p-values of the z statistics."""
        from scipy.special import ndtr

        return self._series(2.0 * ndtr(-np.abs(self.tvalues.to_numpy())), "P>|z|")

    def conf_int(self, alpha: float = 0.05) -> pd.DataFrame:
        """Intervals that cover with probability 1 − alpha: θ ± z·se, or percentiles of the bootstrap."""
        import pandas as pd
        from scipy.special import ndtri

        alpha = require_probability("alpha", alpha)
        if self.errors[0] == "bootstrap":
            found = self.drawn.conf_int(alpha)
            found.loc[self.bse.isna().to_numpy()] = np.nan
            return found
        wide = ndtri(1.0 - alpha / 2.0) * self.bse.to_numpy()
        index = list(self.reward_model.names)
        return pd.DataFrame({"lower": self.theta - wide, "upper": self.theta + wide}, index=index)

    def bootstrap(
        self,
        reps: int | None = None,
        seed: int | None = None,
        jobs: int | None = None,
        progress: bool | None = None,
    ) -> Bootstrap:
        """Resample agents `reps` (400) times and estimate everything again, from the estimate; kept once computed.

        After `with_errors("bootstrap", by=...)` whole groups of agents are drawn.
        The first step is re-estimated, and so are transitions that came from the same agents. `jobs` workers share the
        work; by default all cores if it is worth it, or what `joblib.parallel_config` says. The result depends on
        `seed` (0) alone.
        """
        from revealed.bootstrap import check_options

        given = {"reps": reps, "seed": seed, "jobs": jobs, "progress": progress}
        options = self._own_bootstrap | {name: value for name, value in given.items() if value is not None}
        check_options(**options)
        key = self._bootstrap_key(options)
        before = self.kept.get(key)
        if before is None or before.interrupted:
            self.kept[key] = self._resample(options, {} if before is None else before.done)
        return self.kept[key]

    @property
    def _own_bootstrap(self) -> dict[str, Any]:
        return BOOTSTRAP | (self.chosen[2] if self.chosen is not None else {})

    @property
    def drawn(self) -> Bootstrap:
        """The bootstrap behind the errors, as far as it got: one stopped by Ctrl-C is not resumed automatically."""
        own = self._own_bootstrap
        kept = self.kept.get(self._bootstrap_key(own))
        return self.bootstrap() if kept is None else kept

    def _bootstrap_key(self, options: dict[str, Any]) -> tuple[Any, ...]:
        by = () if self.groups is None else (self.groups.key,)
        return ("bootstrap", options["reps"], options["seed"], *by)

    @property
    def _reestimation(self) -> Reestimation:
        """What each replication of a bootstrap does."""
        from revealed.reestimation import Reestimation

        parts = (self.estimator, self.mdp, self.demonstrations, self.theta, self.near_value)
        return Reestimation(*parts, bool(self.settled))

    def _resample(self, options: dict[str, Any], done: dict[int, Replication]) -> Bootstrap:
        from revealed.bootstrap import resample

        if self.estimator is None:
            raise InvalidOption("bootstrap", "a fit made by an estimator", "one built by hand")
        if not self.at_maximum:
            rule = f"requires a fit whose search finished, not {self.status.code}"
            raise InvalidOption.conflict("bootstrap", rule, remedy=self.status.message)
        again = self._reestimation
        names = tuple(self.reward_model.names)
        told = {"re_estimated": again.in_words(), "done": done, "groups": self.groups}
        return resample(again, self.demonstrations.n_agents, names, **options, **told)

    def wald_test(self, hypothesis: Any) -> TestResult:
        """Test linear restrictions: `fit.wald_test({"RC": 10})`, `{"a": "b"}` for a = b, or (R, q) for Rθ = q."""
        from revealed.hypotheses import wald_test

        return wald_test(self, hypothesis)

    @cached_property
    def identification(self) -> Identification:
        """Rank and conditioning of the information about θ, and the weak direction in words."""
        from revealed.identification import identify

        point = self.evidence.with_hessian
        names = self.reward_model.names
        if point.objective.has_hessian:
            return identify(point.information, names, point.size)
        self.evidence.require("opg" if self.evidence.even else "cluster", joint=False)
        U, n = self.evidence.scores, self.evidence.counts[self.evidence.seen]
        return identify((U * n[:, None]).T @ U / n.sum(), names)
