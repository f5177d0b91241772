"""Shared by all tests. The plugin is named here too, so that the tests run from a checkout that was never installed."""
from __future__ import annotations

pytest_plugins = ["irtool.expect"]
