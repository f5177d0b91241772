"""Shared by all tests. The plugin is named here too, so that the tests run from a checkout that was never installed."""
from __future__ import annotations

import os

from hypothesis import settings

pytest_plugins = ["irtool.expect"]

settings.register_profile("irtool", deadline=None)                      # a busy machine is no failure
settings.register_profile("ci", deadline=None, derandomize=True)        # nor is an example that another change met by chance
settings.load_profile("ci" if os.environ.get("CI") else "irtool")
