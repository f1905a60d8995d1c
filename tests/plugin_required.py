"""Tests that need something optional: skipped where it is missing, unless the run says that it must be there.

`@pytest.mark.torch` and `@pytest.mark.chromium` skip a test where PyTorch or a Chromium browser is missing. With
`REVEALED_REQUIRE=torch,chromium` in the environment such a skip, for whatever reason, is a failure: a run that was
meant to cover everything cannot pass by leaving something out. Workers of pytest-xdist inherit the environment.
"""

import importlib.util
import os
import shutil
from collections.abc import Generator

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def has_torch() -> bool:
    return importlib.util.find_spec("torch") is not None


def has_chromium() -> bool:
    return any(shutil.which(name) for name in BROWSERS)


# marker -> (is it there?, the reason to give when it is not)
OPTIONAL = {
    "torch": (has_torch, "torch is not installed (pip install torch)"),
    "chromium": (has_chromium, f"no browser on the PATH ({', '.join(BROWSERS)})"),
}


def required() -> set[str]:
    """The names listed in REVEALED_REQUIRE."""
    return {name.strip() for name in os.environ.get("REVEALED_REQUIRE", "").split(",")} - {""}


def pytest_configure() -> None:
    unknown = required() - OPTIONAL.keys()
    if unknown:
        raise pytest.UsageError(f"REVEALED_REQUIRE names {sorted(unknown)}; known names: {sorted(OPTIONAL)}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = {name: reason for name, (present, reason) in OPTIONAL.items() if not present()}
    for item in items:
        for name, reason in missing.items():
            if item.get_closest_marker(name):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A marked test that was skipped fails when its marker is required (an expected failure is no skip)."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        names = sorted(name for name in required() if item.get_closest_marker(name))
        if names:
            fail(report, f"REVEALED_REQUIRE lists {', '.join(names)}, but the test was skipped")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A module that skips itself whole, as `pytest.importorskip("torch")` does, has no marked tests left to judge:
    its reason must not name what is required."""
    report = yield
    if report.skipped:
        names = sorted(name for name in required() if name in skip_reason(report))
        if names:
            fail(report, f"REVEALED_REQUIRE lists {', '.join(names)}, but the module was skipped")
    return report


def skip_reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The reason of a skip: pytest stores (file, line, reason)."""
    return report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)


def fail(report: pytest.TestReport | pytest.CollectReport, message: str) -> None:
    report.longrepr = f"{message}: {skip_reason(report)}"
    report.outcome = "failed"
