"""Shared by all tests. The plugin is named here too, so that the tests run from a checkout that was never installed."""
from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from shutil import which
from typing import Any

import pytest
from hypothesis import settings

from irtool.execute.fallbacks import raise_faults

pytest_plugins = ["irtool.expect"]

settings.register_profile("irtool", deadline=None)                      # a busy machine is no failure
settings.register_profile("ci", deadline=None, derandomize=True)        # nor is an example that another change met by chance
settings.load_profile("ci" if os.environ.get("CI") else "irtool")


gc.set_threshold(700, 10, 100)      # the tests themselves are many objects, through which Python looked hundreds of times
raise_faults()      # what is run another way than it was to be is an error, unless a reason for it is declared


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Headless Chromium of the system."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=which("chromium"), args=["--no-sandbox"] * (os.geteuid() == 0))
        yield started
        started.close()


@pytest.fixture(autouse=True, scope="session")
def cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is kept between processes goes to a folder of the tests'."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IRTOOL_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def variables() -> dict[str, str]:
    """The environment, without what pytest and torch write there."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "TORCHINDUCTOR_", "TRITON_"))}


@pytest.fixture(autouse=True)
def process_as_it_was(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that leaves objects frozen, or nothing collected, makes all later ones slow; one that leaves a variable of the environment
    changes what later commands say; `make test` imports no torch."""
    had_torch, environment = "torch" in sys.modules, variables()
    yield
    assert variables() == environment
    assert gc.isenabled() and not gc.get_freeze_count()
    assert had_torch or "torch" not in sys.modules or request.config.option.markexpr != "not oracle"


# -- what did not run
COMPARES = "compare with torch (make oracle)"
BROWSES = "open pages in Chromium (make browser)"
DOCUMENTS = "build the site of the documentation (make docs)"
LEFT_OUT = pytest.StashKey[int]()
"""How many tests marked `oracle` the command line leaves out."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    has_browser = which("chromium") is not None and find_spec("playwright") is not None
    for mark, is_there, reason in (("oracle", find_spec("torch") is not None, COMPARES), ("browser", has_browser, BROWSES),
                                   ("docs", find_spec("mkdocs") is not None, DOCUMENTS)):
        for item in [] if is_there else items:
            if item.get_closest_marker(mark):
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    config = items[0].config
    count = sum(item.get_closest_marker("oracle") is not None for item in items) if config.option.markexpr else 0
    config.stash[LEFT_OUT] = count      # of the last call: -m leaves out what -k let through
    if hasattr(config, "workeroutput"):
        config.workeroutput["left out"] = count


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Each worker of xdist leaves the same tests out."""
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left out", 0)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """How many tests were skipped, by reason."""
    reasons = Counter({COMPARES: config.stash.get(LEFT_OUT, 0)})
    for report in terminalreporter.stats.get("skipped", ()):
        reasons[report.longrepr[2].removeprefix("Skipped: ") if isinstance(report.longrepr, tuple) else "other"] += 1
    if any(reasons.values()):
        terminalreporter.section("skipped")
        for reason, count in reasons.most_common():
            terminalreporter.line(f"{count:6} {reason}")
