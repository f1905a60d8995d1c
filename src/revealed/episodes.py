"""Episodes of other libraries → states and actions: Minari, imitation, Gymnasium loops. None of them is imported.

What counts is what an episode has: observations (one more than actions) and actions, under the names of Minari
(`observations`, `actions`, `terminations`) or of imitation (`obs`, `acts`, `terminal`), as attributes or as keys of a
dict; flat transitions with `dones`; or a list of steps as loops write them (`step_forms.py`). An observation becomes a
state if it says which: a whole number, also as a float or in an array of one element, a one-hot vector, a label of the
model, a dict with one such entry. For all others there is `state_of`, a function of one observation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np

from revealed.checks import Bools, Floats, Ints, as_list, is_index, is_mapping, require_count, require_floats
from revealed.errors import InvalidDemonstrations, InvalidInput
from revealed.labels import holds_numbers, places_by_text, plain, require_declared, spell
from revealed.mdp import MDP, require_mdp
from revealed.naming import in_words, state_in_words
from revealed.step_forms import (
    PAIRS,
    STEP,
    Step,
    as_flags,
    as_flat,
    as_step,
    form_of,
    from_dict,
    looks_like,
    remedy_for,
    require_order,
    same,
    was_cut,
)
from revealed.voices import shown

FLAT = ("dones", "terminals", "timeouts", "next_observations", "next_obs")  # of arrays that may hold several episodes
FORMS = f"Minari episodes, imitation trajectories or transitions, dicts of both kinds, or lists of steps {STEP}"
Function = Callable[[Any], Any]


@dataclass(frozen=True, eq=False)
class Episode:
    """What an agent saw and did, named as Minari names it: T actions, T + 1 observations.

    `terminations[-1]` tells that the episode ended by itself, `truncations[-1]` that it was cut off. Where it was not
    written down what the last action led to there are T observations.
    """

    observations: Any = field(repr=False)
    actions: Any = field(repr=False)
    rewards: Floats = field(repr=False)
    terminations: Bools = field(repr=False)
    truncations: Bools = field(repr=False)
    id: Any = None
    goes_on: bool = field(repr=False, default=False)  # the rest of the episode before it; what lies between is missing

    def __len__(self) -> int:
        return len(self.actions)

    def __repr__(self) -> str:
        end = "terminated" if self.ended else "truncated" if np.any(self.truncations) else "goes on"
        return f"Episode({len(self)} steps, return {float(np.sum(self.rewards)):g}, {end})"

    @property
    def ended(self) -> bool:
        """Whether it ended by itself, and was not merely cut off."""
        return bool(np.any(self.terminations))


@dataclass(frozen=True)
class Read:
    """Episodes as `Demonstrations.from_trajectories` takes them."""

    pairs: list[tuple[Ints, Ints]]
    after: list[Any]
    ids: list[Any]
    goes_on: list[bool]
    n_states: int
    n_actions: int
    notes: tuple[str, ...]


def read_episodes(
    given: Any,
    mdp: MDP | None,
    n_states: int | None,
    n_actions: int | None,
    state_of: Function | None,
    action_of: Function | None,
) -> Read:
    """Every episode's states and actions as indices, its last state where an ended episode ends in the model."""
    model = _as_model(mdp)
    episodes, notes = as_episodes(given)
    if not episodes:
        raise InvalidDemonstrations("episodes", f"at least one of {FORMS}", shown(given))
    S = _size("n_states", n_states, getattr(model, "n_states", None), given, "observation_space")
    A = _size("n_actions", n_actions, getattr(model, "n_actions", None), given, "action_space")
    hidden = model is not None and bool(model.terminal[-1])  # an end that a model appended is never observed
    states = _Coder("observations", "state_of", state_of, S, getattr(model, "state_labels", None), hidden)
    actions = _Coder("actions", "action_of", action_of, A, getattr(model, "action_labels", None))
    coded = []
    for i, episode in enumerate(episodes):
        T = _length(i, episode.actions)
        a = actions.code(i, _by_time(episode.actions, T, T, _parts(given, "action_space"), f"episode {i}"))
        s = states.code(i, _by_time(episode.observations, T + 1, T, _parts(given, "observation_space"), f"episode {i}"))
        _require_lengths(i, s, a)
        coded.append((s, a))
    appended = model is not None and hidden and not any((s == model.n_states - 1).any() for s, _ in coded)
    after = [_last(i, episodes[i].ended, s, a, model, appended) for i, (s, a) in enumerate(coded)]
    pairs = [(s[: max(len(a), 1)], a) for s, a in coded]
    goes_on = [episode.goes_on for episode in episodes]
    return Read(pairs, after, _ids(episodes), goes_on, _most(S, pairs, after, 0), _most(A, pairs, after, 1), notes)


def _ids(episodes: list[Episode]) -> list[Any]:
    """Their own where all have different ones, else numbers; the rest of an episode is its agent's."""
    number = np.cumsum([not episode.goes_on for episode in episodes]) - 1
    whole = [episode for episode in episodes if not episode.goes_on]
    ids = [i if episode.id is None else episode.id for i, episode in enumerate(whole)]
    ids = ids if len(set(map(spell, ids))) == len(ids) else list(range(len(ids)))
    return [ids[max(k, 0)] for k in number]


def is_foreign(given: Any) -> bool:
    """Whether these are other people's episodes rather than (states, actions) pairs."""
    if hasattr(given, "iterate_episodes") or _is_read(from_dict(given)):
        return True
    first = next(iter(given), None) if isinstance(given, Sequence) else None
    return _is_read(from_dict(first)) or _is_step(first) or _is_steps(first)


# ------------------------------------------------------------------------------------------------- whatever it comes in

Found = tuple[list[Episode], tuple[str, ...]]


def as_episodes(given: Any) -> Found:
    """A list of episodes, and what is to be said of them."""
    if _is_read(from_dict(given)):
        return _each(0, given)
    listed = as_list(given.iterate_episodes() if hasattr(given, "iterate_episodes") else given)
    if listed is None or isinstance(given, str | Mapping):
        raise InvalidDemonstrations("episodes", FORMS, looks_like(given), remedy=remedy_for(given))
    if listed and _is_step(listed[0]):
        return _from_steps(listed)
    found = [_each(i, item) for i, item in enumerate(listed)]
    said = dict.fromkeys(note for _, notes in found for note in notes)
    return [one for episodes, _ in found for one in episodes], tuple(said)


def _each(i: int, item: Any) -> Found:
    read = from_dict(item)
    if _is_transitions(read):
        return _cut(read, f"episode {i}")
    if _is_read(read):
        if read is not item:
            _require_one(i, read)
        return [_as_episode(i, read)], ()
    if _is_steps(item):
        return _from_steps(list(item))
    raise InvalidDemonstrations("episodes", FORMS, looks_like(item), f"episode {i}", remedy_for(item))


def _is_read(item: Any) -> bool:
    """Whether it has what an episode has, or flat transitions."""
    return any(all(hasattr(item, name) for name in both) for both in PAIRS)


def _is_transitions(item: Any) -> bool:
    return all(hasattr(item, name) for name in ("obs", "acts", "next_obs", "dones"))


def _is_step(item: Any) -> bool:
    return form_of(item) is not None


def _is_steps(item: Any) -> bool:
    return isinstance(item, list | tuple) and len(item) > 0 and _is_step(item[0])


def _as_episode(i: int, item: Any) -> Episode:
    if isinstance(item, Episode):
        return item
    if hasattr(item, "observations"):
        T = _length(i, item.actions)
        ends = [as_flags(n, getattr(item, n, False), (1, T), f"episode {i}") for n in ("terminations", "truncations")]
        rewards = _rewards(getattr(item, "rewards", ()), f"episode {i}")
        return Episode(item.observations, item.actions, rewards, ends[0], ends[1], getattr(item, "id", None))
    ended = bool(as_flags("terminal", getattr(item, "terminal", False), (1,), f"episode {i}")[0])
    cut = ended and _was_cut(getattr(item, "infos", None))  # imitation's `terminal` is true of both
    rewards = _rewards(getattr(item, "rews", ()), f"episode {i}")
    return Episode(item.obs, item.acts, rewards, np.array([ended and not cut]), np.array([cut]))


def _require_one(i: int, item: Any) -> None:
    """A dict whose arrays hold several episodes says so by flags of its own, or by an end before the last step."""
    flat = [name for name in FLAT if hasattr(item, name)]
    if flat:
        remedy = "Flat arrays need obs, acts, next_obs and dones; else pass one dict per episode."
        raise InvalidDemonstrations("episodes", "one episode", f"arrays with `{flat[0]}`", f"episode {i}", remedy)
    for name in ("terminations", "truncations"):
        given = getattr(item, name, False)
        early = np.flatnonzero(as_flags(name, given, (np.size(given),), f"episode {i}")[:-1])
        if early.size:
            where = f"episode {i}, step {int(early[0])}"
            rule = "may be True only at the last step of an episode"
            raise InvalidDemonstrations.conflict(name, rule, where, "Split the episode there.")


def _rewards(given: Any, where: str) -> Floats:
    return require_floats("rewards", () if given is None else given, "numbers", InvalidDemonstrations, where=where)


def _was_cut(infos: Any) -> bool:
    return was_cut(infos[-1] if infos is not None and len(infos) else None)


def _from_steps(given: list[Any]) -> Found:
    """Steps one after the other, cut where an episode ended; often what the last of each led to was not written
    down."""
    form = form_of(given[0])
    assert form is not None
    steps = [as_step(k, item, form) for k, item in enumerate(given)]
    if "next_obs" in form:
        require_order(steps)
        return _cut(as_flat(steps), "the steps")
    ends = [k + 1 for k, step in enumerate(steps) if step.terminated or step.truncated or k == len(steps) - 1]
    return [_episode_of(steps[i:j]) for i, j in pairwise([0, *ends])], ()


def _episode_of(steps: list[Step]) -> Episode:
    observed, acts, rewards, terminated, truncated = (
        [getattr(step, name) for step in steps] for name in ("obs", "action", "reward", "terminated", "truncated")
    )
    return Episode(observed, acts, np.asarray(rewards, float), np.array(terminated), np.array(truncated))


def _cut(flat: Any, where: str) -> tuple[list[Episode], tuple[str, ...]]:
    """Flat transitions, cut at `dones` and where one does not begin where the one before it led."""
    n = len(flat.acts)
    parts = {name: _by_time(getattr(flat, name), n, n) for name in ("obs", "next_obs", "acts")}
    short = next((name for name, part in parts.items() if len(part) != n), None)
    if short is not None:
        got = f"{len(parts[short])} of `{short}` and {n} of `acts`"
        raise InvalidDemonstrations("episodes", "as many of `obs` and `next_obs` as of `acts`", got, where)
    rows, nexts, acts = parts.values()
    dones = as_flags("dones", flat.dones, (n,), where)
    infos = getattr(flat, "infos", None)
    rewards = _rewards(getattr(flat, "rews", np.zeros(n)), where)
    jumps = {t for t in range(n - 1) if not dones[t] and not same(nexts[t], rows[t + 1])}
    cuts = [0, *sorted({int(t) + 1 for t in (*np.flatnonzero(dones), *jumps, n - 1)})] if n else []
    episodes = []
    for i, j in pairwise(cuts):
        cut = bool(dones[j - 1]) and _was_cut(None if infos is None else infos[j - 1 : j])
        ends = np.array([bool(dones[j - 1]) and not cut]), np.array([cut])
        rest = i - 1 in jumps
        episodes.append(Episode([*rows[i:j], nexts[j - 1]], acts[i:j], rewards[i:j], *ends, goes_on=rest))
    which = "1 transition does" if len(jumps) == 1 else f"{len(jumps)} transitions do"
    broken = (
        f"{which} not begin where the previous one led; trajectories are split there, the second part is not a start, "
    )
    broken += "and times continue as if nothing were missing. `dones` must mark where episodes end."
    return episodes, (broken,) if jumps else ()


# --------------------------------------------------------------------------------------------- observations over time


def _parts(data: Any, space: str) -> int | None:
    """Of how many parts each observation or action is, where a data set has a Tuple space; None where nothing tells."""
    spaces = getattr(getattr(data, space, None), "spaces", None)
    return len(spaces) if isinstance(spaces, tuple | list) else None


def _by_time(values: Any, long: int, short: int, parts: int | None = None, where: str | None = None) -> Any:
    """Something indexed by time: an array or list as it is; dicts and tuples of arrays taken apart. A tuple that may
    be either is one of arrays where the data set's space has as many `parts`; else nothing tells."""
    if callable(getattr(values, "unwrap", None)):  # imitation's DictObs
        values = values.unwrap()
    if is_mapping(values):
        each = {key: _by_time(part, long, short, None, where) for key, part in values.items()}
        n = min((len(part) for part in each.values()), default=0)
        return [{key: part[t] for key, part in each.items()} for t in range(n)]
    if isinstance(values, tuple) and _is_by_part(values, (long, short), parts, where):
        return list(zip(*values, strict=False))
    return values if isinstance(values, np.ndarray) else list(values)


def _is_by_part(values: tuple[Any, ...], lengths: tuple[int, int], parts: int | None, where: str | None) -> bool:
    """Whether a tuple holds an array over time for each part of an observation, not an observation for each time."""
    by_time = len(values) in lengths
    by_part = bool(values) and all(np.ndim(part) > 0 and len(part) in lengths for part in values)
    if not by_time or (by_part and len(values) == parts):
        return True
    if by_part and parts is None:
        got = f"a tuple of {len(values)} with {len(values[0])} values each"
        remedy = "Pass a list of observations, or a dict of arrays with a name for each part."
        expected = "a sequence of observations, or one array over time for each part of them"
        raise InvalidDemonstrations("episodes", expected, f"{got}, which could be either", where, remedy)
    return False


class _Coder:
    """Observations or actions of an episode → indices; what says nothing is an error with its episode and time."""

    def __init__(
        self, what: str, option: str, function: Function | None, n: int | None, labels: Any, hidden: bool = False
    ) -> None:
        if function is not None and not callable(function):
            raise InvalidInput(option, f"a function of one {what.removesuffix('s')}", type(function).__name__)
        self.what, self.option, self.function, self.n = what, option, function, n
        self.labels = places_by_text(labels or ())
        self.numbered = labels is not None and holds_numbers(labels)  # whole numbers are labels then
        self.in_parts = any(isinstance(plain(label), tuple) for label in labels or ())
        self.order = labels
        self.widths = set() if n is None else {n, n - hidden} - {0, 1}  # of one-hot vectors

    def code(self, episode: int, values: Any) -> Ints:
        if isinstance(values, np.ma.MaskedArray):
            remedy = "Drop masked steps, or fill them: x.filled(value)."
            raise InvalidDemonstrations(self.what, "plain arrays", "a masked array", f"episode {episode}", remedy)
        array = values if isinstance(values, np.ndarray) and self.function is None else None
        if array is not None and array.dtype.kind in "iu" and array.size == len(array) and not self.numbered:
            self._require_positions()
            index = array.reshape(-1).astype(np.intp)
        else:
            index = np.array([self._one(episode, t, value) for t, value in enumerate(values)], dtype=np.intp)
        bad = (index < 0) | (index >= (np.inf if self.n is None else self.n))
        if bad.any():
            t = int(np.flatnonzero(bad)[0])
            self._refuse(episode, t, int(index[t]))
        return index

    def _one(self, episode: int, t: int, value: Any) -> int:
        told = value if self.function is None else self.function(value)
        found = self._index(told)
        if found is None:
            self._refuse(episode, t, told)
        return int(found)

    def _index(self, value: Any) -> int | None:
        if is_mapping(value):
            return self._index(next(iter(value.values()))) if len(value) == 1 else None
        if isinstance(value, str | tuple | bool | np.bool_) and spell(value) in self.labels:
            return self.labels[spell(value)]
        if self.in_parts and np.ndim(value) == 1:  # a row of numbers is a label of several parts, and no one-hot vector
            row = np.asarray(value).tolist()
            whole = (int(x) if isinstance(x, float) and x.is_integer() else x for x in row)
            return self.labels.get(spell(tuple(row)), self.labels.get(spell(tuple(whole))))
        plain = not isinstance(value, str | np.ma.MaskedArray)
        array = np.asarray(value) if plain else np.zeros(0)
        if array.dtype.kind not in "iuf" or array.size == 0 or not np.isfinite(array).all():
            return None
        if array.size == 1 and self.numbered:
            number = array.reshape(-1)[0].item()
            whole = spell(int(number)) if number == round(number) else ""
            return self.labels.get(spell(number), self.labels.get(whole))
        self._require_positions()
        if array.size == 1:
            number = float(array.reshape(-1)[0])
            return int(number) if number == round(number) else None
        hot = np.flatnonzero(array)
        one = array.ndim == 1 and array.size in self.widths and hot.size == 1 and array[hot[0]] == 1
        return int(hot[0]) if one else None

    def _require_positions(self) -> None:
        """Numbers and one-hot vectors are positions, in an order of the model that was declared."""
        role = "action" if self.what == "actions" else "state"
        require_declared(self.what, role, self.order, "numbers without labels", InvalidDemonstrations)

    def _refuse(self, episode: int, t: int, got: Any) -> NoReturn:
        known = "indices from 0" if self.n is None else f"indices in 0…{self.n - 1}"
        known = "labels of the model" if self.numbered else known + (", or labels" if self.labels else "")
        remedy = f"Pass {self.option}=, a function that returns the index of one of them."
        if self.function is not None:
            known, remedy = f"{known} from {self.option}", ""
        where = f"episode {episode}, step {t}"
        raise InvalidDemonstrations(self.what, known, _short(got), where, remedy or None)


def _short(value: Any) -> str:
    text = shown(plain(value) if not isinstance(value, np.ndarray) else value.tolist())
    return text if len(text) <= 60 else text[:59] + "…"


# ---------------------------------------------------------------------------------------------------- sizes and endings


def _as_model(mdp: Any) -> MDP | None:
    if mdp is None:
        return None
    require_mdp(mdp)
    return mdp.base or mdp


def _size(name: str, given: Any, own: int | None, data: Any, space: str) -> int | None:
    """As given, else the model's, else what the data set's space counts; None where only the data can tell."""
    if given is not None:
        require_count(name, given, error=InvalidDemonstrations)
    if given is not None and own is not None and given != own:
        raise InvalidDemonstrations(name, f"{own}, as in the MDP", given)
    counted: Any = getattr(getattr(data, space, None), "n", None)
    return next((int(n) for n in (given, own, counted) if n is not None and is_index(n)), None)


def _most(size: int | None, pairs: list[tuple[Ints, Ints]], after: list[Any], which: int) -> int:
    if size is not None:
        return size
    seen = [int(pair[which].max(initial=0)) for pair in pairs] + [s for s in after if s is not None and which == 0]
    return max(seen) + 1


def _length(i: int, actions: Any) -> int:
    try:
        return len(actions)
    except TypeError as error:
        raise InvalidDemonstrations("actions", "a sequence", shown(actions), f"episode {i}") from error


def _require_lengths(i: int, states: Ints, actions: Ints) -> None:
    if len(states) not in (len(actions), len(actions) + 1):
        expected = "as many observations as actions, or one more"
        got = f"{len(states)} observations and {len(actions)} actions"
        raise InvalidDemonstrations("episodes", expected, got, f"episode {i}")


def _last(i: int, ended: bool, states: Ints, actions: Ints, model: MDP | None, appended: bool) -> int | None:
    """Where the last decision led: what was observed, but the end that a model has appended where one was met."""
    T = len(actions)
    seen = int(states[T]) if len(states) > T else None
    if T == 0:
        return None
    if model is None or not ended or not model.terminal.any():
        return seen
    if seen is not None and model.terminal[seen]:
        return seen
    s, a = int(states[T - 1]), int(actions[-1])
    ends = _possible_ends(model, s, a)
    if seen is None:  # of several ends, which one it met was not written down
        return int(ends[0]) if ends.size == 1 else None
    if appended and model.n_states - 1 in ends:
        return model.n_states - 1
    act = in_words("action", model.action_labels, a)
    raise InvalidDemonstrations.impossible(
        f"an episode terminated in {state_in_words(model, seen)}, which is not terminal in the MDP (after {act} in "
        f"{state_in_words(model, s)})",
        f"episode {i}, step {T}",
        "Take the model from MDP.from_gymnasium, mark the state terminal, or pass n_states= and n_actions= instead of "
        "mdp.",
        "episodes",
    )


def _possible_ends(model: MDP, s: int, a: int) -> Ints:
    matrix = model.transitions.matrix
    row = s * model.n_actions + a
    found = matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]
    return found[model.terminal[found]].astype(np.intp)
