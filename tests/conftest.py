"""Shared by all tests. The plugin is named here too, so that the tests run from a checkout that was never installed."""
from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from irtool.execute.fallbacks import raise_faults

pytest_plugins = ["irtool.expect"]

settings.register_profile("irtool", deadline=None)                      # a busy machine is no failure
settings.register_profile("ci", deadline=None, derandomize=True)        # nor is an example that another change met by chance
settings.load_profile("ci" if os.environ.get("CI") else "irtool")


raise_faults()      # what is run another way than it was to be is an error, unless a reason for it is declared


@pytest.fixture(autouse=True, scope="session")
def cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is kept between processes goes to a folder of the tests'."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IRTOOL_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def collector_as_it_was() -> Iterator[None]:
    """A test that leaves objects frozen, or nothing collected, makes all later ones slow."""
    yield
    assert gc.isenabled() and not gc.get_freeze_count()
