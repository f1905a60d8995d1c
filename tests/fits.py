"""Fits made by hand, with any numbers, names and endings, to see how they are printed."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from revealed.bootstrap import Bootstrap, Replication
from revealed.diagnosis import Status
from revealed.summary import Summary

PSI, PSI_ERRS = np.array([0.3919, 0.5953]), np.array([0.0075, 0.0075])


class MileageReward:
    """A reward of which only the names are read, and whether its parameters are weights of features."""

    def __init__(self, names: Any, linear: bool) -> None:
        self.names, self.linear = tuple(names), linear


@dataclass
class MadeUp:
    """Rust's group 4 with the published errors, unless told otherwise. `raises` is what asking for errors meets.

    `moves` names the transitions' parameters, where they were estimated; `resampled` tells whether a bootstrap did.
    """

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
    rank: int | None = None
    linear: bool = True
    at_maximum: bool = True
    moves: Any = None
    resampled: bool = True
    discount: float = 0.9999
    agents: int | None = 37
    raises: Exception | None = None
    nobs: int = 4292
    llf: float = -163.581
    llnull: float = -2974.988
    llsat: float = -140.5
    hit_rate: float = 0.9923
    goodness: Any = "No χ² test: it is made up."
    groups: Any = None
    failures: dict[str, int] = field(default_factory=dict)
    iterations: int = 7
    seconds: float = 0.021

    def __post_init__(self) -> None:
        self.theta, self._bse = np.array(self.coef, dtype=float), np.array(self.errs, dtype=float)
        self.reward_model = MileageReward(self.names, self.linear)
        self.status = Status(self.code, self.message, self.remarks)
        self.options = {"weighting": self.weighting, "l2": self.l2, "first_step": self.first_step}
        self.psi, self.psi_errs = (np.resize(v, len(self.moves or ())) for v in (PSI, PSI_ERRS))
        moves = None if self.moves is None else SimpleNamespace(names=tuple(self.moves), psi=self.psi)
        self.mdp = SimpleNamespace(n_states=90, n_actions=2, discount=self.discount, base=None, estimated=moves)
        counts = np.array([[self.nobs - 33.0, 33.0]])
        steps = None if self.agents is None else "single steps"
        self.demonstrations = SimpleNamespace(n_agents=self.agents or 1, visit_discount=1.0, counts=counts, steps=steps)

    def _series(self, values: Any) -> pd.Series:
        if self.raises is not None:
            raise self.raises
        return pd.Series(values)

    def cov_params(self, kind: str | None = None, joint: bool | None = None) -> pd.DataFrame:
        """With joint errors the transitions' parameters come last."""
        assert kind == self.errors[0]
        with_moves = joint and (kind != "bootstrap" or self.resampled)
        return pd.DataFrame(np.diag(np.append(self._bse, self.psi_errs if with_moves else []) ** 2))

    @property
    def aic(self) -> float:
        return 2 * self.theta.size - 2 * self.llf

    @property
    def bic(self) -> float:
        return np.log(self.nobs) * self.theta.size - 2 * self.llf

    @property
    def prsquared(self) -> float:
        return 1.0 - self.llf / self.llnull

    @property
    def prsquared_adj(self) -> float:
        return 1.0 - (self.llf - self.theta.size) / self.llnull

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

    @property
    def drawn(self) -> Bootstrap:
        """As many replications as were asked for, spread evenly around the estimates."""
        used = 400 - sum(self.failures.values())
        share = np.linspace(-2.0, 2.0, used)[:, None]
        theta, psi = self.theta + share * self._bse, self.psi + share * self.psi_errs
        psi = psi if self.resampled else psi[:, :0]
        done = {r: Replication(self.theta, self.psi) for r in range(400)}
        names, numbers = tuple(self.names), np.arange(used)
        return Bootstrap(names, theta, psi, numbers, 400, 0, self.failures, "agents resampled", done)

    @property
    def identification(self) -> Any:
        K = self.theta.size
        rank = K if self.rank is None else self.rank
        return SimpleNamespace(words=self.weak, rank=rank, n_params=K, condition=120.0)

    def summary(self, alpha: float = 0.05) -> Summary:
        return Summary(self, alpha)


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
