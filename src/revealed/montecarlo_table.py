"""What a Monte Carlo study found: one tidy frame, and the tables that people read off it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import require_count
from revealed.sheet import Printed, Row, Sheet

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

PER_PARAMETER = (
    "truth", "bias", "bias_se", "sd", "rmse", "mean_se", "coverage", "coverage_se", "used", "no_interval",
)  # fmt: skip
HEAD = ("", "bias", "sd", "rmse", "se", "cover", "±", "sec")  # short: a line of a terminal has eighty characters
SHOWN = ("bias", "sd", "rmse", "mean_se")
SHARES = ("coverage", "coverage_se")
LONG_HEAD = ("", "truth", "bias", "sd", "rmse", "mean se", "coverage", "±", "used", "seconds")
LONG = ("truth", *SHOWN)


@dataclass(frozen=True, eq=False, repr=False)
class MonteCarlo(Printed):
    """Estimates of known parameters over many data sets.

    `frame` has a row per replication, method and parameter: estimate, se, lower, upper, covered (missing where there
    is no interval), used (whether the estimate counts), status, message, no_errors (why a fit has no standard errors),
    seconds, error_seconds, settled, decisions. `truth` are the true weights by name; `about` describes the study.
    """

    frame: pd.DataFrame = field(repr=False)
    truth: pd.Series
    methods: tuple[str, ...]
    about: dict[str, Any]

    @classmethod
    def gather(cls, truth: dict[str, float], records: list[dict[str, Any]], about: dict[str, Any]) -> MonteCarlo:
        """From the records of replications, in their order."""
        import pandas as pd

        methods = tuple(about["methods"])
        blocks = [_block(record, name, truth) for record in records for name in methods]
        frame = pd.DataFrame({column: np.concatenate([b[column] for b in blocks]) for column in blocks[0]})
        frame["covered"] = _covered(frame)
        return cls(frame, pd.Series(truth, name="truth"), methods, about)

    @property
    def replications(self) -> int:
        return int(self.frame["replication"].nunique())

    def table(self) -> pd.DataFrame:
        """By (method, parameter): truth, bias with its own error, sd, rmse, mean_se, coverage with its own error.

        `used` estimates count; those that failed do not. `no_interval` of them have no standard error, and count for
        bias and sd but not for coverage. Coverage's own error is Agresti and Coull's, of (x + 2) of (n + 4): where all
        of a few intervals hold the truth that does not prove that all would.
        """
        import pandas as pd

        used = self.frame[self.frame["used"]]
        groups = dict(iter(used.groupby(["method", "parameter"], sort=False)))
        rows = {
            (method, name): _judge(groups.get((method, name), used.iloc[:0]), float(self.truth[name]))
            for method in self.methods
            for name in self.truth.index
        }
        table = pd.DataFrame(list(rows.values()), columns=list(PER_PARAMETER))
        table.index = pd.MultiIndex.from_tuples(list(rows), names=["method", "parameter"])
        return table

    def by_method(self) -> pd.DataFrame:
        """By method: replications, used, failed, seconds of a fit (mean and median) and of its standard errors."""
        import pandas as pd

        fits = self._fits()
        table = pd.DataFrame(
            {
                "replications": fits.size(),
                "used": fits["used"].sum(),
                "failed": fits.size() - fits["used"].sum(),
                "seconds": fits["seconds"].mean(),
                "median_seconds": fits["seconds"].median(),
                "error_seconds": fits["error_seconds"].mean(),
            }
        )
        return table.reindex(list(self.methods))

    @property
    def failures(self) -> pd.DataFrame:
        """By (method, status): how many estimates do not count, and the reason that the first of them gave."""
        failed = self.frame[~self.frame["used"]].drop_duplicates(["replication", "method"])
        return failed.groupby(["method", "status"], sort=False).agg(
            count=("message", "size"), reason=("message", "first")
        )

    def _fits(self) -> Any:
        return self.frame.drop_duplicates(["replication", "method"]).groupby("method", sort=False)

    # -- what people read ---------------------------------------------------------------------------------------------

    @property
    def title(self) -> str:
        about = self.about
        size = "trips" if about["length"] is None else f"× {about['length']} decisions"
        data = f"{self.replications} replications of {about['n']} {size}"
        return f"Monte Carlo: {about['world']}, {data}"

    @property
    def notes(self) -> tuple[str, ...]:
        """The kind of intervals, what was left out and why, and where there was no interval."""
        about = self.about
        errors = (about["kind"] or "the fits' own") + " standard errors"
        errors += f" ({about['reps']} replications each)" if "reps" in about else ""
        joint = " that count the estimated transitions" if about["joint"] else ""
        interval = f"intervals of {100.0 * about['level']:g} % from {errors}{joint}"
        notes = [
            f"se: the mean standard error; cover: the share of the {interval} that contain the true value, ± its "
            "Monte Carlo error; sec: the median seconds of a fit."
        ]
        for (method, status), row in self.failures.iterrows():  # pyright: ignore[reportGeneralTypeIssues]
            notes.append(f"{method}: {row['count']} left out, {status}: {row['reason']}")
        return (*notes, *self._without_interval())

    def _without_interval(self) -> list[str]:
        missing = self.table()["no_interval"].groupby("method", sort=False).max()
        told = self.frame[self.frame["no_errors"] != ""].drop_duplicates("method")
        reasons = dict(zip(told["method"], told["no_errors"]))
        return [
            f"{method}: {count:.0f} without an interval" + (f": {reasons[method]}" if method in reasons else ".")
            for method, count in missing.items()
            if count
        ]

    def to_markdown(self) -> str:
        """The table as Markdown holds it, with more columns than are printed."""
        rows = [LONG_HEAD, ("---", *("---:" for _ in LONG_HEAD[1:])), *self._long_rows()]
        return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)

    def _sheet(self) -> Sheet:
        return Sheet(self.title, HEAD, self._blocks(), notes=self.notes, title=self.title)

    def _long_rows(self) -> list[Row]:
        """Method by method, a row per parameter; seconds of a fit stand in the first."""
        table, seconds, first = self._rows(), self.by_method()["median_seconds"], self.truth.index[0]
        return [
            (f"{m}: {p}", *_cells(row, LONG), f"{row['used']:.0f}", f"{seconds[m]:.3g}" if p == first else "")
            for (m, p), row in table.items()
        ]

    def _blocks(self) -> tuple[tuple[Row, ...], ...]:
        """A block per parameter, under its name and truth, with a row per method: these are what is compared."""
        table, seconds, first = self._rows(), self.by_method()["median_seconds"], self.truth.index[0]
        blocks = []
        for p, truth in self.truth.items():
            head = (f"{p} = {_number(float(truth))}", *("" for _ in HEAD[1:]))
            time = {m: _seconds(seconds[m]) if p == first else "" for m in self.methods}
            blocks.append((head, *((m, *_cells(table[m, p], SHOWN), time[m]) for m in self.methods)))
        return tuple(blocks)

    def _rows(self) -> dict[Any, dict[Any, Any]]:
        """The table by (method, parameter)."""
        return self.table().to_dict("index")

    def plot(self, most: int = 6) -> Figure:
        """Each method's estimates of each parameter (`most` at most) beside the truth."""
        from matplotlib.figure import Figure

        from revealed.plots import plot_estimates

        require_count("most", most)
        names = list(self.truth.index[:most])
        size = (1.6 + 3.2 * len(names), 1.2 + 0.4 * len(self.methods))
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
        used = self.frame[self.frame["used"]]
        for ax, name in zip(axes, names):
            part = used[used["parameter"] == name]
            draws = {m: part.loc[part["method"] == m, "estimate"].to_numpy() for m in self.methods}
            plot_estimates(ax, draws, float(self.truth[name]), title=name)
        return figure


def _block(record: dict[str, Any], method: str, truth: dict[str, float]) -> dict[str, Any]:
    """One fit's columns, a row per parameter; NaN where it has nothing to tell."""
    fit, K = record["fits"][method], len(truth)
    nothing = [np.nan] * K
    each = {
        "replication": record["replication"],
        "method": method,
        "used": bool(fit["used"]),
        "status": fit["status"],
        "message": fit["message"],
        "no_errors": fit.get("no_errors", ""),
        "settled": fit.get("settled"),
        "seconds": fit.get("seconds", np.nan),
        "error_seconds": fit.get("error_seconds", np.nan),
        "decisions": np.nan if record["decisions"] is None else record["decisions"],
    }
    own = {"parameter": list(truth), "truth": list(truth.values()), "estimate": fit.get("theta", nothing)}
    own |= {name: fit.get(name, nothing) for name in ("se", "lower", "upper")}
    order = ("replication", "method", "parameter")
    columns = {name: [value] * K for name, value in each.items()} | own
    columns = {name: columns[name] for name in (*order, *(c for c in columns if c not in order))}
    return {name: np.array(column, dtype=object if name == "settled" else None) for name, column in columns.items()}


def _covered(frame: pd.DataFrame) -> Any:
    """Whether each interval holds the truth; missing where there is none."""
    inside = (frame["lower"] <= frame["truth"]) & (frame["truth"] <= frame["upper"])
    return inside.astype("boolean").mask(frame["lower"].isna() | frame["upper"].isna())


def _judge(part: pd.DataFrame, truth: float) -> tuple[float, ...]:
    """One row of the table, in the order of PER_PARAMETER."""
    x = part["estimate"].to_numpy(dtype=np.float64)
    R = x.size
    covered = part["covered"].dropna().to_numpy(dtype=np.float64)
    sd = float(x.std(ddof=1)) if R > 1 else np.nan
    bias = float(x.mean() - truth) if R else np.nan
    rmse = float(np.sqrt(np.mean((x - truth) ** 2))) if R else np.nan
    share = float(covered.mean()) if covered.size else np.nan
    error = _share_error(covered.sum(), covered.size) if covered.size else np.nan
    se = part["se"].to_numpy(dtype=np.float64)
    mean_se = float(se[np.isfinite(se)].mean()) if np.isfinite(se).any() else np.nan
    return truth, bias, sd / np.sqrt(max(R, 1)), sd, rmse, mean_se, share, error, R, R - covered.size


def _share_error(x: float, n: int) -> float:
    """The standard error of a share of x in n after Agresti and Coull: not zero where all or none are counted."""
    share = (x + 2.0) / (n + 4.0)
    return float(np.sqrt(share * (1.0 - share) / (n + 4.0)))


def _cells(row: Any, names: tuple[str, ...]) -> tuple[str, ...]:
    """These numbers of a row of the table, and its shares."""
    shares = ("–" if np.isnan(row[name]) else f"{row[name]:.3f}" for name in SHARES)
    return (*(_number(float(row[name])) for name in names), *shares)


def _seconds(x: float) -> str:
    return "–" if np.isnan(x) else f"{x:.3f}" if x < 10.0 else f"{x:.0f}"


def _number(x: float) -> str:
    """Three decimals, or three digits where the number is very small or very large; a dash for none."""
    if not np.isfinite(x):
        return "–"
    return f"{x:.3f}" if x == 0.0 or 1e-2 <= abs(x) < 1e5 else f"{x:.3g}"
