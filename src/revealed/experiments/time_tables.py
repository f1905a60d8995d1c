"""The tables of training times: by the paper's way of computing beside the paper's seconds, ours, searches, targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from revealed.experiments.cells import METHODS, Results, Table
from revealed.experiments.numbers import whole_percent
from revealed.experiments.paper_way import COSTS, OURS, TOO_LARGE, paper_way
from revealed.experiments.published import PLATFORM, TRAINING_SECONDS, TRAINING_SPEED_UPS
from revealed.experiments.seconds import LOAD, NONE, in_seconds, load_column, times, with_load

if TYPE_CHECKING:
    import pandas as pd

SEARCHES = {
    OURS: "Adam, as in the paper",
    "own": "L-BFGS",
    "adam tighter": "Adam, ten times tighter",
}
AIMED = {OURS: "ours", "adam tighter": "tighter"}
AIMS = {"MCE-IRL": 100, "NPL": 30, "CCP": 20}  # so many times under the paper's seconds
Mean = dict[str, Any]  # means over seeds, and how they are to be written
MEANS = ["seconds", "step", "iterations", "linear_solves", "updates", "reached", "evd_share"]


def tables(results: Results) -> dict[str, Table]:
    made = {
        "table2": _paper_way(results),
        "ours": _ours(results),
        "variants": _all_searches(results),
        "aims": _aims(results),
    }
    return {name: table for name, table in made.items() if len(table.frame)}


def settings_of(results: Results) -> list[str]:
    """The settings that have results, in the order of the paper's table."""
    return list(dict.fromkeys(results.frame["setting"]))


def mean_of(rows: pd.DataFrame, setting: str, method: str) -> Mean | None:
    """Means over seeds of what was measured there; None where nothing was."""
    there = rows[(rows["setting"] == setting) & (rows["method"] == method)]
    if not len(there):
        return None
    extrapolated = "extrapolated" in there and (there["extrapolated"] == True).any()  # noqa: E712
    about = {"searches": len(there), "load": load_column(there), "sign": "≈" if extrapolated else ""}
    means = there[[name for name in MEANS if name in there]].astype(float).mean()
    return {str(name): value for name, value in means.items()} | about


def _paper_way(results: Results) -> Table:
    import pandas as pd

    found = paper_way(results)
    lines = [
        {"Settings": setting, "method": method} | _paper_way_line(found, setting, method)
        for setting in settings_of(results)
        for method in METHODS
        if mean_of(found, setting, method) is not None
    ]
    seeds = found.groupby(["setting", "method"])["seconds"].count()
    caption = (
        "Training time by the paper's way of computing (Algorithms 1 and 2 with dense value iteration, inverses and "
        f"tensors), on this machine: seconds until the threshold, Adam, mean over {_range(seeds)} seeds. “≈”: too long "
        "for a whole search, so steps × the time of a step, and what is computed once and once for "
        "each π̃; dense and sparse searches take the same steps, so they are those of ours. The speed-up is against "
        "MCE-IRL; “CCP's steps”: so many steps of CCP are one step of this "
        "method. * where not every search reached the threshold. The paper's columns are from another machine "
        f"({PLATFORM}) and from searches of unknown length: it gives no threshold, and speaks of thousands of "
        f"steps.{_not_measured(results, found)} {LOAD}"
    )
    return Table(pd.DataFrame(with_load(lines)), caption)


def _paper_way_line(found: pd.DataFrame, setting: str, method: str) -> dict[str, str]:
    mean = _known(mean_of(found, setting, method))
    sign, paper = mean["sign"], TRAINING_SECONDS.get(setting, {}).get(method)
    printed = TRAINING_SPEED_UPS.get(setting, {}).get(method)
    return {
        "seconds": sign + in_seconds(mean["seconds"]) + _star(mean),
        "speed-up": _speed_up(mean, mean_of(found, setting, "MCE-IRL"), method),
        "steps": f"{mean['iterations']:.0f}",
        "π̃ updates": NONE if method == "MCE-IRL" else f"{mean['updates']:.0f}",
        "s per step": sign + in_seconds(mean["step"]),
        "CCP's steps": _in_steps(mean, mean_of(found, setting, "CCP")),
        "paper [s]": NONE if paper is None else f"{paper:.2f}",
        "its speed-up": NONE if printed is None else times(printed),
        "load": mean["load"],
    }


def _known(mean: Mean | None) -> Mean:
    assert mean is not None
    return mean


def _star(mean: Mean) -> str:
    return "" if mean["reached"] == 1.0 else "*"


def _speed_up(mean: Mean, base: Mean | None, method: str) -> str:
    if base is None or method == "MCE-IRL":
        return NONE
    return mean["sign"] + times(base["seconds"] / mean["seconds"])


def _in_steps(mean: Mean, base: Mean | None) -> str:
    return NONE if base is None else mean["sign"] + times(mean["step"] / base["step"])


def _range(seeds: pd.Series) -> str:
    few, many = int(seeds.min() if len(seeds) else 0), int(seeds.max() if len(seeds) else 0)
    return str(few) if few == many else f"{few} to {many}"


def _not_measured(results: Results, found: pd.DataFrame) -> str:
    """Which settings have no time by the paper's way, and why."""
    missing = [setting for setting in settings_of(results) if not (found["setting"] == setting).any()]
    if not missing:
        return ""
    large = set(results.where(variant=COSTS, status=TOO_LARGE)["setting"])
    named = [setting + (" (too large for this machine's memory)" if setting in large else "") for setting in missing]
    return f" Not measured here: {', '.join(named)}."


def _ours(results: Results) -> Table:
    import pandas as pd

    ours, found = results.where(variant=OURS), paper_way(results)
    lines = []
    for setting in settings_of(results):
        for method in METHODS:
            mean, dense = mean_of(ours, setting, method), mean_of(found, setting, method)
            if mean is None:
                continue
            line = {"Settings": setting, "method": method, "seconds": in_seconds(mean["seconds"]) + _star(mean)}
            line |= {
                "speed-up": _speed_up(mean, mean_of(ours, setting, "MCE-IRL"), method),
                "steps": f"{mean['iterations']:.0f}",
                "s per step": in_seconds(mean["step"]),
                "CCP's steps": _in_steps(mean, mean_of(ours, setting, "CCP")),
                "EVD share": whole_percent(mean["evd_share"]),
                "dense [s]": NONE if dense is None else dense["sign"] + in_seconds(dense["seconds"]),
                "dense/ours": _beside(dense, mean),
                "load": mean["load"],
            }
            lines.append(line)
    caption = (
        f"{cost_of_a_step(results)} What sparse algebra, warm starts and reuse leave of that gap: the same "
        "searches by this library, mean over "
        f"{_range(ours.groupby(['setting', 'method'])['seed'].count())} seeds, beside the paper's dense way of "
        "computing on the same machine. “CCP's steps”: so many steps of CCP are one step of this method. “EVD share” "
        "shows how far a search had come: EVD as a share of what the uniform policy loses. The threshold is the same "
        "number at every size, and on larger grids it is met by networks that have learnt less; the table of all "
        f"searches has the tighter one. * where not every search reached the threshold. {LOAD}"
    )
    return Table(pd.DataFrame(with_load(lines)), caption.strip())


def _beside(dense: Mean | None, mean: Mean) -> str:
    return NONE if dense is None else dense["sign"] + times(dense["seconds"] / mean["seconds"])


def _all_searches(results: Results) -> Table:
    import pandas as pd

    lines = []
    for setting in settings_of(results):
        for variant, words in SEARCHES.items():
            rows = results.where(variant=variant)
            base = mean_of(rows, setting, "MCE-IRL")
            for method in METHODS:
                mean = mean_of(rows, setting, method)
                if mean is not None:
                    lines.append({"Settings": setting, "search": words, "method": method} | _search_words(mean, base))
    caption = (
        "All searches by this library: with Adam and L-BFGS, and with a threshold ten times tighter. Means over seeds; "
        "steps and linear solves are sums over NPL's updates. “EVD share” shows how far a search had come: EVD as a "
        "share of what the uniform policy loses. A search that does not reach the threshold ends after "
        f"{results.config.max_iter} steps (of each update): its seconds are those of the steps, and no speed-up is "
        f"given. {LOAD}"
    )
    return Table(pd.DataFrame(with_load(lines)), caption)


def _search_words(mean: Mean, base: Mean | None) -> dict[str, str]:
    return {
        "seconds": in_seconds(mean["seconds"]),
        "speed-up": times(base["seconds"] / mean["seconds"]) if base is not None and _whole(mean, base) else NONE,
        "steps": f"{mean['iterations']:.0f}",
        "linear solves": f"{mean['linear_solves']:.0f}",
        "EVD share": whole_percent(mean["evd_share"]),
        "threshold reached": f"{mean['reached'] * mean['searches']:.0f} of {mean['searches']:.0f}",
        "load": mean["load"],
    }


def _whole(mean: Mean, base: Mean) -> bool:
    """Whether both reached the threshold in all searches; else the seconds are those of the steps allowed."""
    return mean["reached"] == 1.0 == base["reached"]


def _aims(results: Results) -> Table:
    import pandas as pd

    lines = []
    for setting in settings_of(results):
        for method, aim in AIMS.items():
            paper = TRAINING_SECONDS.get(setting, {}).get(method)
            means = {words: mean_of(results.where(variant=name), setting, method) for name, words in AIMED.items()}
            if paper is None or all(mean is None for mean in means.values()):
                continue
            line: dict[str, Any] = {"Settings": setting, "method": method, "paper [s]": f"{paper:.2f}"}
            line["aim"] = f"×{aim}"
            for words, mean in means.items():
                line |= _aimed(words, mean, paper, aim)
            lines.append(line)
    caption = (
        "Targets for the paper's settings: a given factor below its seconds, with Adam; ✓ where reached. “Tighter” is "
        f"the threshold ten times tighter, which networks do not meet: there they end after {results.config.max_iter} "
        f"steps of each maximisation, about as many as the paper speaks of. The machines differ ({PLATFORM} there)."
    )
    return Table(pd.DataFrame(lines), caption)


def _aimed(words: str, mean: Mean | None, paper: float, aim: int) -> dict[str, str]:
    if mean is None:
        return {f"{words} [s]": NONE, f"{words}, ratio": NONE}
    ratio = paper / mean["seconds"]
    mark = " ✓" if ratio >= aim else ""
    return {f"{words} [s]": in_seconds(mean["seconds"]) + _star(mean), f"{words}, ratio": times(ratio) + mark}


def cost_of_a_step(results: Results) -> str:
    """Our finding: how many steps of CCP a step of MCE-IRL costs here, and by the paper's way; empty where unknown."""
    ours, found = results.where(variant=OURS), paper_way(results)
    told = []
    for setting in _largest(ours, found):
        here, there = _in_steps_of_ccp(ours, setting), _in_steps_of_ccp(found, setting)
        dense = f" (by the paper's way of computing {there})" if there else ""
        told += [f"{here} steps of CCP on {setting}{dense}"] if here else []
    cost = " and ".join(told)
    return f"With sparse algebra, warm starts and reuse a step of MCE-IRL costs {cost}." if told else ""


def _largest(ours: pd.DataFrame, found: pd.DataFrame) -> list[str]:
    """The largest setting of each world, of those with both ways of computing if there are any."""
    both = ours[ours["setting"].isin(set(found["setting"]))]
    largest: dict[str, str] = {}
    for setting in (both if len(both) else ours).sort_values("states", ascending=False, kind="stable")["setting"]:
        largest.setdefault(setting.partition("²")[0].rstrip("0123456789"), setting)
    return list(largest.values())


def _in_steps_of_ccp(rows: pd.DataFrame, setting: str) -> str:
    one, other = mean_of(rows, setting, "MCE-IRL"), mean_of(rows, setting, "CCP")
    if one is None or other is None:
        return ""
    ratio = one["step"] / other["step"]
    return one["sign"] + (f"{ratio:,.0f}" if ratio >= 9.5 else f"{ratio:.2g}")
