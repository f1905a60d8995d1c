"""The folder is the derivation: each file imports only from files above it, so the order below is the reading order.

Imports inside functions count, and so do those under `if TYPE_CHECKING:` (outside `__init__.py`, where they only
describe names that load on first use). The package's own `__init__.py` and `__main__.py` stand below everything.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src" / "revealed"

# A package stands after its own files: its __init__.py gathers them.
# fmt: off
ORDER: list[str] = [
    "voices", "errors", "sparse_input", "checks", "gates", "eigen", "tables",
    "labels", "naming", "positions", "files", "archive", "written", "formats", "frames", "declared_order",
    "numeric_columns", "bins",
    "progress", "parallel", "clusters", "latex", "page", "sheet",
    "transitions.aggregates", "transitions.pattern", "transitions.csr", "transitions.graph", "transitions.estimated",
    "transitions.padding", "transitions.padded", "transitions.layered", "transitions",
    "superlu", "krylov", "linear_solvers", "gymnasium_trial", "gymnasium_table", "transition_tables", "model_checks",
    "device_solvers", "device_model", "placed", "mdp", "alignment",
    "levels", "sweeps", "cold_start", "layers", "chain", "device_bellman", "bellman", "hard_bellman", "paths",
    "goal_values",
    "panels.columns", "panels.clock", "panels.memory", "panels.groups", "panels.sql", "panels.in_duckdb",
    "panels.in_engine", "panels.where", "panels",
    "trajectories", "goal_steps", "step_forms", "episodes", "demonstrations", "kernels", "seen_moves",
    "smooth_transitions", "transition_models", "goal_checks", "matching", "simulation", "starts", "agent_groups",
    "trip_demand",
    "rewards.holes", "rewards.base", "rewards.feature_table", "rewards.linear", "rewards.tabular", "rewards.units",
    "rewards.neural", "rewards.torch", "rewards", "transfer", "trip_simulation",
    "logit_rows", "slopes", "pi_tilde", "objective",
    "device_kernels", "device_rewards", "device_pi_tilde", "device_parts", "device_cases",
    "curvature", "optimize", "diagnosis", "first_step", "coverage",
    "goal_rows", "goal_cases", "route_cases", "goal_first_step", "goal_likelihood", "goal_flows",
    "influence", "inference", "goal_inference", "bootstrap", "reestimation", "nesting", "hypotheses", "identification",
    "uncertainty",
    "plot_checks", "plots", "band_plots", "long_run", "behaviour", "doubt", "bands", "scenario", "change_words",
    "counterfactual", "demand", "goal_behaviour", "goal_counterfactual",
    "goodness", "estimates", "summary", "comparison",
    "saving", "labelled", "fit", "goal_fit", "estimation", "device_estimation", "goal_estimation",
    "estimators", "loaded_kinds", "loaded_transitions", "loaded_checks", "loaded_updates", "loaded_words", "recomputed",
    "loaded_history", "loading",
    "reward_distances", "metrics",
    "routes", "environments", "datasets",
    "montecarlo_folder", "montecarlo_table", "montecarlo",
    "advisor.data", "advisor.trials", "advisor.rules", "advisor.table", "advisor.advice", "advisor",
    "experiments",
    "claim_words", "claims_page", "drawn", "findings", "report",
    "fit_report.places", "fit_report.figures", "fit_report.material", "fit_report.chapters",
    "fit_report.trip_figures", "fit_report.trips", "fit_report.whole", "fit_report",
    "typed", "description", "sense", "road_recipe", "recipe", "commands", "cli",
]
# fmt: on

# In these packages every file has the package's place, and files of one package may import each other.
COLLECTIONS = {"routes", "environments", "datasets", "experiments", "commands"}

# The root package may import everything, hence nothing may import from it.
UNRESTRICTED = {"", "__main__"}


def module_name(path: Path) -> str:
    """`rewards/linear.py` -> `rewards.linear`; `rewards/__init__.py` -> `rewards`; the root's own is ''."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def rank(module: str) -> int | None:
    """The place in the order; None for a module that the order does not cover."""
    if module in ORDER:
        return ORDER.index(module)
    top = module.partition(".")[0]
    return ORDER.index(top) if top in COLLECTIONS else None


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return name in ORDER or path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def allowed(importer: str, imported: str) -> bool:
    above, here = rank(imported), rank(importer)
    if above is None or here is None:
        return False
    return above < here or (above == here and importer.partition(".")[0] in COLLECTIONS)


def imports(source: str, module: str, is_package: bool) -> Iterator[tuple[int, str]]:
    """(line, module of revealed) for every import in the source, wherever it stands."""
    package = module if is_package else module.rpartition(".")[0]
    for node in walk(ast.parse(source), skip_type_checking=is_package):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = absolute("." * node.level + (node.module or ""), package)
            names = [target for alias in node.names if (target := imported_from(base, alias.name)) is not None]
        elif isinstance(node, ast.Call) and (name := called_import(node)):
            names = [absolute(name, package)]
        else:
            continue
        for name in names:
            if name.partition(".")[0] == "revealed":
                yield node.lineno, name.removeprefix("revealed").removeprefix(".")


def walk(node: ast.AST, skip_type_checking: bool) -> Iterator[ast.AST]:
    yield node
    children = ast.iter_child_nodes(node)
    if skip_type_checking and isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
        children = iter(node.orelse)
    for child in children:
        yield from walk(child, skip_type_checking)


def absolute(name: str, package: str) -> str:
    """The full name of a possibly relative module: '..mdp' in package 'rewards' -> 'revealed.mdp'."""
    tail = name.lstrip(".")
    level = len(name) - len(tail)
    if level == 0:
        return tail
    parents = ["revealed", *package.split(".")] if package else ["revealed"]
    return ".".join([*parents[: len(parents) - level + 1], *([tail] if tail else [])])


def imported_from(base: str, name: str) -> str | None:
    """What `from base import name` loads: the submodule `name` if there is one, else base; a dunder of the root
    package, such as its `__version__`, is defined in place and loads nothing."""
    if base == "revealed" and name.startswith("__"):
        return None
    within = f"{base}.{name}"
    return within if base.partition(".")[0] == "revealed" and is_module(within.removeprefix("revealed.")) else base


def called_import(node: ast.Call) -> str | None:
    """The name in import_module("...") or __import__("..."), where it is written out."""
    if ast.unparse(node.func).rpartition(".")[2] not in {"import_module", "__import__"} or not node.args:
        return None
    name = node.args[0]
    return name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else None


def sources() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def test_every_file_has_a_place_in_the_order():
    lost = [
        str(path.relative_to(ROOT))
        for path in sources()
        if module_name(path) not in UNRESTRICTED and rank(module_name(path)) is None
    ]
    assert not lost, f"not in the order of tests/test_layers.py; decide what they build on and add them: {lost}"


def test_each_file_imports_only_from_files_above_it():
    upward = []
    for path in sources():
        module = module_name(path)
        if module in UNRESTRICTED or rank(module) is None:
            continue
        for line, target in imports(path.read_text(encoding="utf-8"), module, path.name == "__init__.py"):
            if not allowed(module, target):
                what = f"revealed.{target}" if target else "the root package"
                upward.append(f"{path.relative_to(ROOT)}:{line} imports {what}, which is not above it")
    assert not upward, "\n" + "\n".join(upward)


@pytest.mark.parametrize(
    ("source", "module", "expected"),
    [
        ("import revealed.mdp", "chain", ["mdp"]),
        ("import revealed.mdp as m, numpy", "chain", ["mdp"]),
        ("from revealed.mdp import MDP", "chain", ["mdp"]),
        ("from revealed import mdp, errors", "chain", ["mdp", "errors"]),
        ("from revealed import MDP", "chain", [""]),
        ("from revealed import __version__", "chain", []),
        ("from .mdp import MDP", "chain", ["mdp"]),
        ("from . import mdp", "chain", ["mdp"]),
        ("from ..mdp import MDP", "rewards.linear", ["mdp"]),
        ("from .base import Reward", "rewards.linear", ["rewards.base"]),
        ("from . import base", "rewards.linear", ["rewards.base"]),
        ("import torch", "rewards.torch", []),
        ("def f():\n    from .fit import Fit", "objective", ["fit"]),
        ("if TYPE_CHECKING:\n    from .fit import Fit", "objective", ["fit"]),
        ("import_module('.fit', __package__)", "objective", ["fit"]),
        ("importlib.import_module('revealed.fit')", "objective", ["fit"]),
    ],
)
def test_imports_are_found(source, module, expected):
    assert [name for _, name in imports(source, module, is_package=False)] == expected


def test_in_a_package_file_relative_imports_start_inside_and_type_checking_is_free():
    source = "from .base import R\nif TYPE_CHECKING:\n    from .neural import N\nelse:\n    from ..fit import Fit"
    assert [name for _, name in imports(source, "rewards", is_package=True)] == ["rewards.base", "fit"]


@pytest.mark.parametrize(
    ("importer", "imported", "verdict"),
    [
        ("chain", "mdp", True),
        ("mdp", "chain", False),
        ("mdp", "mdp", False),
        ("rewards.linear", "rewards.base", True),
        ("rewards.base", "rewards.linear", False),
        ("rewards.base", "rewards", False),
        ("rewards", "rewards.torch", True),
        ("environments.garnet", "environments.world", True),
        ("environments.world", "environments.garnet", True),
        ("environments.garnet", "experiments.figure1", False),
        ("cli", "report", True),
        ("cli", "", False),
        ("fit", "no_such_file", False),
    ],
)
def test_only_what_is_above_may_be_imported(importer, imported, verdict):
    assert allowed(importer, imported) is verdict
