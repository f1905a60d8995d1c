"""What a saved fit says in words, said anew from its numbers: the message and the notes of its status, and what its
bootstrap drew. Stored texts are not trusted. They only tell which of the sentences that the numbers allow was meant;
what the file does not hold, such as the error that stopped a solver, is read as it was stored (docs/data.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from revealed.bootstrap import Bootstrap
from revealed.diagnosis import UNSEEN, Status
from revealed.estimation import HELD_BY, LEFT, SETTLED, Run
from revealed.fit import AnyFit
from revealed.goal_first_step import EachEstimated
from revealed.loaded_updates import last_move, was_asked
from revealed.objective import Evaluation
from revealed.optimize import MOST_ROUNDS, ROUNDED, Search, tol_words
from revealed.rewards.base import is_linear
from revealed.voices import marked, speak

MOST_SLOPES = 200_000  # pairs times parameters, up to which second differences are taken for a note
REACHED = ("converged", "unidentified", "cycling")
_LEFT_OUT = "features of {which} were left out: the model does not have them."
STALLED = "no further progress at gradient norm "


def retold(fit: AnyFit, run: Run, point: Evaluation, pi_tilde: Any) -> Status:
    """The status of a fit whose numbers have been checked, with the words that follow from them."""
    told = fit.status
    _as_it_ended(fit, run, point, pi_tilde)
    again = run.diagnose(_search(fit, run, point))[1]
    message, held = again.message, marked(HELD_BY.format(which="", l2=fit.options["l2"]))
    same = _unnamed(told.message, fit) == _unnamed(message, fit)
    if told.code == "inner_solve_failed" or _names_a_problem(fit, run) or same:
        message = told.message
    more = [note for note in told.notes if _unnamed(note, fit) == held][:1] if fit.options["l2"] > 0.0 else []
    more = more if all(_unnamed(note, fit) != held for note in again.notes) else []
    return replace(told, message=message, notes=(*again.notes, *more))


def _unnamed(text: str, fit: AnyFit) -> str:
    """The sentence without the weights that it names in brackets: which ones stand out also depends on the way that a
    search came. The marks are kept, so that what either voice says is the same."""
    text = marked(text)
    for found in re.findall(r" \(([^()]*)\)", text):
        if set(found.split(", ")) <= set(fit.reward_model.names):
            return text.replace(f" ({found})", "", 1)
    return text


def _as_it_ended(fit: AnyFit, run: Run, point: Evaluation, pi_tilde: Any) -> None:
    """The state of the run when its status was determined."""
    told, options = fit.status, getattr(fit.estimator, "options", None)
    run.again, run.iterations = False, fit.iterations
    run.ran_away = told.code == "separated"
    if run.ran_away:
        run.runs_away(point)
    if hasattr(fit.reward_model, "usual_l2"):
        usual = fit.reward_model.usual_l2(fit.demonstrations.n_decisions)  # pyright: ignore[reportAttributeAccessIssue]
        run.usual_l2 = options.l2 is None if options is not None else bool(np.isclose(usual, fit.options["l2"]))
    left_out = _like(told, _LEFT_OUT)[:1]
    if left_out and not getattr(run.reward_model, "left_out", ""):  # networks do not keep what they had no use for
        run.reward_model = copy(run.reward_model)
        run.reward_model.left_out = left_out[0]  # pyright: ignore[reportAttributeAccessIssue]
    if not is_linear(run.reward) and run.reward.n_params * fit.mdp.feasible.size > MOST_SLOPES:
        run.unseen = lambda found: list(_like(told, UNSEEN))
    _ask_the_expert(fit, run)
    if fit.method == "NPL":
        run.asked_updates = was_asked(fit)
        moved = last_move(fit, run, point, pi_tilde)
        if moved is None:  # π̃ that an update left is not kept: which of two ends it was
            moved = 0.0 if f"settled after {fit.updates} updates" in told.message else 2.0 * SETTLED
        before = moved if told.code == "cycling" else np.inf
        run.moves = [before] * (fit.updates - 1) + [moved]
        run.settled = bool(fit.settled)


def _ask_the_expert(fit: AnyFit, run: Run) -> None:
    """π̂_E has notes where it was asked for: by the method, the weights, or a start from the CCP estimate."""
    from_ccp = any(row["update"] == 0 for row in fit.rows)
    if fit.method not in ("CCP", "NPL") and fit.options["weighting"] == "sample" and not from_ccp:
        return
    expert = run.expert
    if isinstance(expert, EachEstimated):
        for case in range(expert.rows.n_cases):
            if case not in expert.told:
                expert.of(case, fit.mdp.toward_state(int(expert.rows.goal[case])))


def _search(fit: AnyFit, run: Run, point: Evaluation) -> Search:
    """The last search, as far as the history tells."""
    told, n = fit.status, max(len(last_search(fit)) - 1, 0)
    ends = list(_ends(fit, run, n))
    reached, reason = next((end for end in ends if told.message.startswith(end[1])), ends[0])
    rest = {"departures": int(LEFT in told.notes), "interrupted": told.interrupted}
    failed = told.code == "inner_solve_failed"
    reason = "interrupted by the user" if told.interrupted else reason
    return Search(point, reached and not failed, reason, n, np.zeros_like(point.theta), failed=failed, **rest)


def last_search(fit: AnyFit) -> list[dict[str, Any]]:
    """The rows of the last search: its start, and one for each iteration."""
    return [row for row in fit.rows if row["update"] == fit.rows[-1]["update"]]


def _ends(fit: AnyFit, run: Run, n: int) -> Iterator[tuple[bool, str]]:
    """Whether the last search met its rule, and the reasons for which it may have ended."""
    code, rule = fit.status.code, run.rule
    norms = dict.fromkeys([row["gradient_norm"] for row in fit.rows[-1:]] + [fit.gradient_norm])
    asked = rule.tol or 0.0
    tols = {tol: tol_words(tol, asked) for tol in (asked * 0.1**k for k in range(MOST_ROUNDS + 1))}
    for norm in norms:
        if code != "iteration_limit" or (fit.method == "NPL" and not run.asked_updates):
            yield from ((True, f"gradient norm {norm:.1e} <= {words}") for tol, words in tols.items() if norm <= tol)
            if norm <= ROUNDED:
                yield True, f"gradient norm {norm:.1e}, as small as rounding allows"
        if code not in REACHED:
            if n >= (rule.max_iter or 1):
                yield from ((False, f"{n} iterations, gradient norm {norm:.1e} > {words}") for words in tols.values())
            yield False, f"{STALLED}{norm:.1e}"
    yield code in REACHED, f"gradient norm {fit.gradient_norm:.1e}"


def _names_a_problem(fit: AnyFit, run: Run) -> bool:
    """Whether a search stopped where trials failed, of which only the message tells why."""
    if fit.status.code != "iteration_limit" or fit.status.interrupted:
        return False
    norms = {f"{norm:.1e}" for norm in (*(row["gradient_norm"] for row in fit.rows[-1:]), fit.gradient_norm)}
    after = speak(". " + run._quicker())
    return any(_matches(fit.status.message, f"{STALLED}{norm} ({{why}}){after}") for norm in norms)


def _like(told: Status, template: str) -> tuple[str, ...]:
    """The notes of this form."""
    return tuple(note for note in told.notes if _matches(note, template))


def _matches(text: str, template: str) -> bool:
    return bool(re.fullmatch(".*".join(map(re.escape, re.split(r"\{[^{}]*\}", speak(template)))), text, re.DOTALL))


def bootstrap_retold(fit: AnyFit, found: Bootstrap) -> Bootstrap:
    """A bootstrap with the words for what it drew and estimated again."""
    groups, units = fit.groups, found.units
    if not found.by:
        units = ""
    elif groups is not None and groups.key == found.by:
        units = f"{groups.n} clusters by {groups.by}"
    return replace(found, re_estimated=fit._reestimation.in_words() if fit.estimator else "", units=units)
