"""What the data can tell about the parameters: rank and conditioning of the information, the weak spot in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from revealed.eigen import symmetric_eigen
from revealed.labels import in_series
from revealed.mdp import Floats

WEAK = 30.0  # condition index from which collinearity does harm (Belsley, Kuh and Welsch)
NOTHING = 1e-9  # as in diagnosis.py
TAKES_PART = 0.25  # loading of a feature on a weak direction, of features scaled to unit information


@dataclass(frozen=True, eq=False)
class Identification:
    """`rank` of the information of `n_params` parameters; `condition`, the ratio of its largest to its smallest
    singular value for features scaled to unit length (∞ below full rank); `words`, empty where nothing is weak.

    `weak` (n, K) are the weak directions, as shifts of θ that hardly move a choice.
    """

    rank: int
    n_params: int
    condition: float
    words: str
    weak: Floats = field(repr=False)

    @property
    def strong(self) -> bool:
        return not self.words

    def __str__(self) -> str:
        text = f"rank {self.rank} of {self.n_params}, condition {self.condition:.3g}"
        return f"{text}: {self.words}" if self.words else text


def identify(information: Floats, names: Sequence[str], size: Floats | None = None) -> Identification:
    """Read an information matrix (K, K), scaled to unit diagonal so that units of features do not matter.

    `size` (K,) tells how large the numbers were from which each parameter's information was made: what is below
    rounding beside them is none.
    """
    names = list(names)
    d = np.sqrt(np.maximum(np.diag(information), 0.0))
    live = np.flatnonzero(d > (0.0 if size is None else NOTHING * size))
    found = symmetric_eigen(information[np.ix_(live, live)] / np.outer(d[live], d[live]))
    if found is None or not np.isfinite(d).all():
        return Identification(0, len(names), np.inf, _NO_NUMBERS, np.zeros((0, len(names))))
    values, vectors = found
    null = values < 1e-10 * max(live.size, 1)
    rank = int((~null).sum())
    top = float(values.max(initial=0.0))
    smallest = float(values.min(initial=np.inf)) if rank == len(names) else 0.0
    condition = float(np.sqrt(top / smallest)) if smallest > 0.0 else np.inf
    weak = null | (top > WEAK**2 * np.maximum(values, 0.0))
    parts = [f"choices do not depend on `{name}`" for k, name in enumerate(names) if k not in set(live.tolist())]
    parts += [_in_words(vectors[:, i], d[live], [names[k] for k in live], bool(null[i])) for i in np.flatnonzero(weak)]
    directions = np.zeros((int(weak.sum()), len(names)))
    directions[:, live] = (vectors[:, weak] / d[live, None]).T
    return Identification(rank, len(names), condition, "; ".join(parts), directions)


_NO_NUMBERS = "what choices say about the parameters cannot be computed: some numbers are not finite"


def _in_words(vector: Floats, d: Floats, names: list[str], exactly: bool) -> str:
    """A weak direction in words; `vector` is in units of the information of single parameters, which `d` undoes."""
    shift = vector / d
    if exactly and len(names) > 1 and np.allclose(shift, shift[0], rtol=1e-4, atol=0.0):
        return "choices do not change if every weight moves by the same amount"
    how = "collinear" if exactly else "nearly collinear"
    part = [f"`{name}`" for name, v in zip(names, vector, strict=True) if abs(v) > TAKES_PART]
    part = part or [f"`{names[int(np.argmax(np.abs(vector)))]}`"]
    if len(part) == 1:
        return f"feature {part[0]} is {how} with others: the data identify a combination of them, not each one"
    return f"features {in_series(part)} are {how}: the data identify a combination of them, not each one"
