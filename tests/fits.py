"""Fits made by hand, with any numbers, names and endings, to see how they are printed."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from revealed.bootstrap import Bootstrap
from revealed.diagnosis import Status
from revealed.summary import Summarised


class MileageReward:
    """A reward of which only the names are read."""

    def __init__(self, names: Any) -> None:
        self.names = tuple(names)


@dataclass
class MadeUp(Summarised):
    """Rust's group 4 with the published errors, unless told otherwise. `raises` is what asking for errors meets."""

    coef: Any = (10.075, 2.293)
    errs: Any = (1.582, 0.639)
    names: Any = ("RC", "theta11")
    method: str = "NFXP"
    errors: tuple[str, bool] = ("hessian", False)
    code: str = "converged"
    message: str = "gradient norm 9.8e-10 <= tol 1.0e-09."
    remarks: tuple[str, ...] = ()
    settled: bool | None = None
    updates: int = 1
    weighting: str = "sample"
    first_step: Any = "frequency"
    l2: float = 0.0
    weak: str = ""
    raises: Exception | None = None
    nobs: int = 4292
    llf: float = -163.581
    failures: dict[str, int] = field(default_factory=dict)
    iterations: int = 7
    seconds: float = 0.021

    def __post_init__(self) -> None:
        self.theta, self._bse = np.array(self.coef, dtype=float), np.array(self.errs, dtype=float)
        self.reward_model = MileageReward(self.names)
        self.status = Status(self.code, self.message, self.remarks)
        self.options = {"weighting": self.weighting, "l2": self.l2, "first_step": self.first_step}
        moves = SimpleNamespace(names=("p0", "p1"))
        self.mdp = SimpleNamespace(n_states=90, n_actions=2, discount=0.9999, base=None, estimated=moves)
        counts = np.array([[self.nobs - 33.0, 33.0]])
        self.demonstrations = SimpleNamespace(n_agents=37, visit_discount=1.0, counts=counts)

    def _series(self, values: Any) -> pd.Series:
        """With joint errors two transition parameters come last, as in a real fit."""
        if self.raises is not None:
            raise self.raises
        return pd.Series([*values, 7.0, 8.0] if self.errors[1] else values)

    @property
    def aic(self) -> float:
        return 2 * self.theta.size - 2 * self.llf

    @property
    def bic(self) -> float:
        return np.log(self.nobs) * self.theta.size - 2 * self.llf

    @property
    def bse(self) -> pd.Series:
        return self._series(self._bse)

    @property
    def tvalues(self) -> pd.Series:
        return self._series(self.theta / self._bse)

    @property
    def pvalues(self) -> pd.Series:
        return self._series(2 * ndtr(-np.abs(self.theta / self._bse)))

    def conf_int(self, alpha: float = 0.05) -> pd.DataFrame:
        half = ndtri(1 - alpha / 2) * self._bse
        return pd.DataFrame({"lower": self._series(self.theta - half), "upper": self._series(self.theta + half)})

    def bootstrap(self) -> Bootstrap:
        used = 400 - sum(self.failures.values())
        theta = np.zeros((used, self.theta.size))
        return Bootstrap(tuple(self.names), theta, theta, np.arange(used), 400, 0, self.failures, "agents resampled")

    @property
    def identification(self) -> Any:
        return SimpleNamespace(words=self.weak, rank=self.theta.size)


class Reader(HTMLParser):
    """Rows of cells, the kinds of all elements, and that every element is closed in its turn."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.rows: list[list[str]] = []
        self.kinds: set[str] = set()
        self.words = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open, f"left open: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.kinds.add(tag)
        self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data
        if self._open and self._open[-1] in ("td", "th"):
            self.rows[-1][-1] += data
