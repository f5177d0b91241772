"""Expect tests: a pytest plugin."""
