"""Monte Carlo: fit methods to data whose truth is known, over and over, and count what a single fit cannot show.

Is an estimate right on average, does its standard error match its spread, and does a 95 % interval contain the truth 95
times in a hundred? Replication r draws its data with the r-th child of one seed: every method sees the same data, more
replications leave the earlier ones what they are, and neither workers nor interruptions matter.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np

from revealed import __version__
from revealed.bootstrap import EACH_REPLICATION
from revealed.checks import as_list, is_index, is_mapping, require_count, require_flag, require_option, require_share
from revealed.demonstrations import Demonstrations
from revealed.environments.city import City
from revealed.environments.world import World
from revealed.errors import InvalidInput, InvalidOption, RevealedError
from revealed.estimation import Options
from revealed.estimators import CCP, MCEIRL, NFXP, NPL, Estimator
from revealed.gates import require_memory
from revealed.inference import KINDS
from revealed.mdp import MDP, Floats
from revealed.montecarlo_folder import Folder, digest, without_address
from revealed.montecarlo_table import MonteCarlo
from revealed.parallel import each, one_thread, workers
from revealed.progress import Progress
from revealed.uncertainty import BOOTSTRAP
from revealed.voices import arg, shown

USABLE = ("converged", "unidentified")  # the latter is a point among equals: what to compare is the user's business
NO_WEIGHTS = (
    "Without them there is no bias to measure. Worlds with true_weights are rust_bus, garnet, obstacleworld, "
    "mountain_car, and rv.environments.World(..., true_weights=w) for a reward features @ w of your own. Where the "
    "true reward is not linear, compare fits with world.evaluate(fit)."
)
MOST_AT_ONCE = 20  # replications that a worker takes at a time; a kill loses no more than these


def monte_carlo(
    world: World | City,
    methods: Mapping[str, Any] | Iterable[Any],
    replications: int = 500,
    n: int = 100,
    length: int | None = None,
    seed: int = 0,
    kind: str | None = None,
    joint: bool = False,
    reps: int | None = None,
    level: float = 0.95,
    model: Callable[[Demonstrations], MDP] | None = None,
    folder: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    progress: bool | None = None,
) -> MonteCarlo:
    """Bias, spread, mean standard error, coverage, seconds and failures of methods on a world with known weights.

    Parameters
    ----------
    world : any world with `true_weights`, also `rv.environments.city()`, whose trips have goals.
    methods : name -> estimator, or a list of estimators, which are named by their method and options.
    replications, seed : the number of data sets, and the seed from which all their seeds are derived.
    n, length : trajectories in each, and decisions in each of them (the world's own length unless given; trips with
        goals end on arrival).
    kind, joint : the standard errors, as for `fit.with_errors`; None keeps the default of each fit.
    reps : with kind="bootstrap", the replications of each fit's own bootstrap (400 unless given).
    level : of the intervals.
    model : a function from demonstrations to the MDP that is fitted, where transitions are estimated as well:
        `lambda demos: rv.MDP(rv.estimate_transitions(demos), discount=0.95)`. None: the world's own MDP.
    folder : where finished replications are kept, one line each; a call that was stopped, or that asks for more
        replications, resumes from there. A new or empty folder, or that of the same study.
    jobs : worker processes (see `revealed.parallel`); seconds are comparable where there are no more than cores.
    """
    named = _named(methods)
    _check_numbers(replications, n, length, seed, level, jobs)
    _check_errors(kind, joint, reps, model)
    _check_world(world, named)
    decisions = _length(world, length)
    draws = (reps or BOOTSTRAP["reps"]) if kind == "bootstrap" else None
    study = Study(world, named, int(n), decisions, int(seed), kind, joint, float(level), model, draws)
    return _run(study, int(replications), folder, jobs, progress)


@dataclass(frozen=True)
class Study:
    """What is repeated: everything that a replication needs but its number."""

    world: World | City
    methods: dict[str, Any]
    n: int
    length: int | None
    seed: int
    kind: str | None
    joint: bool
    level: float
    model: Callable[[Demonstrations], MDP] | None
    reps: int | None = None

    @property
    def truth(self) -> Floats:
        return np.asarray(self.world.true_weights, dtype=np.float64)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.world.reward_model().names)

    def draw(self, replication: int) -> Demonstrations:
        """The data of a replication, which are always the same."""
        child = np.random.SeedSequence(self.seed, spawn_key=(replication,))
        seed = int(child.generate_state(1, np.uint64)[0])
        if isinstance(self.world, City):
            return self.world.demonstrate(self.n, seed=seed)
        return self.world.demonstrate(self.n, self.length, seed=seed)

    def build(self, demos: Demonstrations) -> MDP:
        if self.model is None:
            return self.world.mdp
        mdp = self.model(demos)
        if not isinstance(mdp, MDP):
            remedy = "End it with `return rv.MDP(rv.estimate_transitions(demos), discount=...)`."
            raise InvalidOption("model", "a function that returns an rv.MDP", type(mdp).__name__, remedy=remedy)
        return mdp

    @property
    def about(self) -> dict[str, Any]:
        """What is repeated, in plain numbers and words."""
        about = {name: getattr(self, name) for name in ("n", "length", "seed", "kind", "joint", "level")}
        about |= {} if self.reps is None else {"reps": self.reps}
        methods = {name: describe(method, self.truth) for name, method in self.methods.items()}
        truth = dict(zip(self.names, self.truth.tolist(), strict=True))
        return {"world": self.world.name, "truth": truth, "methods": methods} | about

    def fingerprint(self) -> dict[str, Any]:
        """`about`, and what tells two studies apart that read the same: the first data set, its model, the rewards."""
        model = "the world's own" if self.model is None else without_address(repr(self.model))
        marks = {"version": __version__, "model": model, "first_data": None, "first_model": None}
        try:
            demos = self.draw(0)
            marks["first_data"] = digest([demos.counts])
            mdp = self.build(demos)
            matrix = mdp.transitions.matrix
            marks["first_model"] = digest([matrix.data, matrix.indices, matrix.indptr, mdp.discount])
        except InvalidOption:
            raise
        except RevealedError as error:
            marks["first_model"] = _words(error)
        return self.about | marks


def _run(study: Study, replications: int, folder: Any, jobs: int | None, progress: bool | None) -> MonteCarlo:
    store = Folder(folder, study.fingerprint()) if folder is not None else None
    done = {} if store is None else {r: found for r, found in store.read().items() if r < replications}
    missing = [r for r in range(replications) if r not in done]
    with one_thread(), Progress("Monte Carlo", progress, total=len(missing)) as bar:
        for records in each(replicate, ((study, chunk) for chunk in _chunks(missing, jobs)), jobs):
            for record in records:
                done[record["replication"]] = record
                if store is not None:
                    store.add(record)
            bar.update(f"{len(done)} of {replications} done", advance=len(records))
    about = study.about
    return MonteCarlo.gather(about["truth"], [done[r] for r in range(replications)], about)


def _chunks(numbers: list[int], jobs: int | None) -> Iterator[list[int]]:
    """Several replications for each task, since sending one off costs as much as a fit; alone, one at a time."""
    together = workers(jobs)
    size = 1 if together == 1 else min(MOST_AT_ONCE, max(1, len(numbers) // (8 * together)))
    for k in range(0, len(numbers), size):
        yield numbers[k : k + size]


def replicate(study: Study, numbers: list[int]) -> list[dict[str, Any]]:
    """Some replications, wherever they run, as plain numbers and words."""
    return [_one(study, number) for number in numbers]


def _one(study: Study, number: int) -> dict[str, Any]:
    """Draw, fit by every method, and note what came out. That data defeat a method is a result, too."""
    try:
        demos = study.draw(number)
        mdp = study.build(demos)
    except InvalidOption:
        raise  # no data would make it valid: the caller's to mend, not a result
    except RevealedError as error:
        return {"replication": number, "decisions": None, "fits": dict.fromkeys(study.methods, _failed(error))}
    fits = {name: _fit(study, method, mdp, demos) for name, method in study.methods.items()}
    return {"replication": number, "decisions": round(demos.n_decisions), "fits": fits}


def _fit(study: Study, method: Any, mdp: MDP, demos: Demonstrations) -> dict[str, Any]:
    try:
        fit = method.fit(mdp, demos)
    except InvalidOption:
        raise
    except RevealedError as error:
        return _failed(error)
    if fit.status.interrupted:
        raise KeyboardInterrupt  # half a fit is no result
    theta = np.asarray(fit.theta, dtype=np.float64)
    if theta.shape != study.truth.shape:
        raise InvalidInput("methods", f"estimates of {study.truth.size} parameters", f"shape {theta.shape}")
    used = is_usable(fit)
    row = {"status": fit.status.code, "message": fit.status.message, "used": used, "seconds": fit.seconds}
    return row | {"theta": theta.tolist(), "settled": fit.settled} | (_errors(study, fit) if used else {})


def _errors(study: Study, fit: Any) -> dict[str, Any]:
    """Standard errors and intervals, and how long they took; NaN, and the reason, where this fit has none."""
    born = time.perf_counter()
    nothing = np.full(study.truth.size, np.nan)
    se, low, high, reason = nothing, nothing, nothing, ""
    told = _with_errors(study, fit)
    try:
        if _resamples(study, fit) and told.drawn.interrupted:
            raise KeyboardInterrupt
        interval = told.conf_int(alpha=1.0 - study.level)
        se, low, high = (np.asarray(x, dtype=np.float64) for x in (told.bse, interval["lower"], interval["upper"]))
    except RevealedError as error:
        reason = _words(error)
    found = {"se": se.tolist(), "lower": low.tolist(), "upper": high.tolist(), "no_errors": reason}
    return found | {"error_seconds": time.perf_counter() - born}


def _with_errors(study: Study, fit: Any) -> Any:
    """The fit with the errors that were asked for; an error where no data could give them."""
    if study.kind is None and not study.joint:
        return fit
    alone = {"jobs": 1, "progress": False} if _resamples(study, fit) else {}  # we are a worker
    draws = {} if study.reps is None else {"reps": study.reps}
    return fit.with_errors(study.kind or fit.errors[0], joint=study.joint, **alone, **draws)


def _resamples(study: Study, fit: Any) -> bool:
    """Whether the errors come from a bootstrap: on request, or because joint ones have no formula."""
    kind = study.kind or fit.errors[0] if study.joint else study.kind
    return kind == "bootstrap" or (study.joint and bool(getattr(fit, "joint_gap", lambda kind: "")(kind)))


def is_usable(fit: Any) -> bool:
    """Whether an estimate counts: a search that came to its end, also that of NPL truncated after its updates."""
    return bool(np.isfinite(fit.theta).all()) and getattr(fit, "at_maximum", fit.status.code in USABLE)


def _failed(error: Exception) -> dict[str, Any]:
    return {"status": type(error).__name__, "message": _words(error), "used": False}


def _words(error: Exception) -> str:
    return " ".join(str(error).split())


# ------------------------------------------------------------------------------------------------------------ checks


def _named(methods: Any) -> dict[str, Any]:
    """Name -> method, with no bars of their own."""
    if is_mapping(methods):
        given = dict(methods)
    else:
        several = None if isinstance(methods, str) else as_list(methods)
        given = dict(enumerate([methods] if several is None else several))
    for key, method in given.items():
        _require_estimator(key, method)
    if not given:
        raise InvalidInput("methods", "at least one estimator", "none")
    names = [str(key) if is_mapping(methods) else name_of(method) for key, method in given.items()]
    if len(set(names)) < len(names):
        remedy = "Pass a dict that names them."
        raise InvalidInput("methods", "methods that differ in their options", ", ".join(names), remedy=remedy)
    return {name: _quiet(method) for name, method in zip(names, given.values(), strict=True)}


def _require_estimator(key: Any, method: Any) -> None:
    """Something that fits; a class, or the name of one, is told how it becomes an estimator."""
    if not isinstance(method, type) and _fits(getattr(method, "fit", None)):
        return
    got, name = (shown(method), method.upper()) if isinstance(method, str) else (type(method).__name__, "")
    if isinstance(method, type):
        got, name = f"the class {method.__name__}", method.__name__
    known = [offered.__name__ for offered in (NFXP, MCEIRL, CCP, NPL)]
    remedy = f"Pass rv.{name if name in known else known[0]}(world.reward_model())."
    if isinstance(method, type) and callable(getattr(method, "fit", None)) and name not in known:
        remedy = f"Pass an instance, {name}(...)."
    raise InvalidInput("methods", "estimators", got, f"methods[{key!r}]", remedy)


def _fits(fit: Any) -> bool:
    """Whether it can be called as fit(mdp, demonstrations); a recipe's is called with a panel."""
    try:
        return callable(fit) and signature(fit).bind(None, None) is not None
    except TypeError:
        return False
    except ValueError:  # what is not written in Python may have no signature
        return True


def name_of(method: Any) -> str:
    """`NFXP`, `NPL(updates=2)`, `CCP(first_step=kernel)`: the method and the options that were chosen."""
    given = [f"updates={method.updates}"] if getattr(method, "updates", None) is not None else []
    if isinstance(method, Estimator):
        default = Options()
        chosen = {k: v for k, v in vars(method.options).items() if v is not getattr(default, k) and k != "progress"}
        given += [f"{k}={v if isinstance(v, str) else repr(v)[:40]}" for k, v in chosen.items()]
    name = getattr(method, "method", type(method).__name__)
    return f"{name}({', '.join(given)})" if given else name


def describe(method: Any, truth: Floats) -> str:
    """A method with its options in words, and a mark of what its reward makes of the truth."""
    words = without_address(repr(method))
    reward = getattr(method, "reward", None)
    return words if reward is None else f"{words}, {digest([reward.value(truth)])}"


def _quiet(method: Any) -> Any:
    return method.with_options(progress=False) if isinstance(method, Estimator) else method


def _check_world(world: Any, methods: dict[str, Any]) -> None:
    if not isinstance(world, World | City):
        raise InvalidInput("world", "a World, such as rv.environments.rust_bus()", type(world).__name__)
    if world.true_weights is None:
        raise InvalidInput("world", "a world with true_weights", f"{world.name}, which has none", remedy=NO_WEIGHTS)
    for name, method in methods.items():
        K = getattr(getattr(method, "reward", None), "n_params", world.true_weights.size)
        if K != world.true_weights.size:
            expected = f"rewards with the world's {world.true_weights.size} parameters"
            raise InvalidInput("methods", expected, f"{K}", name, "Estimate world.reward_model().")


def _length(world: World | City, length: int | None) -> int | None:
    """Decisions per trajectory at most; None where trips go as far as their goals."""
    if isinstance(world, City):
        if length is not None:
            raise InvalidInput.conflict("length", "has no effect where trips have goals: they end on arrival")
        return None
    return int(world.length if length is None else length)


def _check_numbers(replications: Any, n: Any, length: Any, seed: Any, level: Any, jobs: Any) -> None:
    require_count("replications", replications)
    require_memory("replications", replications, EACH_REPLICATION * int(replications))
    require_count("n", n)
    for name, value in (("length", length), ("jobs", jobs)):
        if value is not None:
            require_count(name, value)
    if not is_index(seed) or seed < 0:
        raise InvalidInput("seed", "a whole number >= 0, so that the study can be repeated", shown(seed))
    require_share("level", level, InvalidInput)


def _check_errors(kind: Any, joint: Any, reps: Any, model: Any) -> None:
    if kind is not None:
        require_option("kind", kind, KINDS)
    require_flag("joint", joint)
    if reps is not None and kind != "bootstrap":
        rule, remedy = f"requires `{arg('kind', 'bootstrap')}`", "The number of data sets is `replications`."
        raise InvalidOption.conflict("reps", rule, remedy=remedy)
    if reps is not None:
        require_count("reps", reps, least=2)
    if model is not None and not callable(model):
        raise InvalidInput("model", "a function from demonstrations to an rv.MDP", type(model).__name__)
