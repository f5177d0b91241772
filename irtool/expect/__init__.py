"""Expect tests as a pytest plugin, for irtool's own tests and for yours (`pip install irtool` is enough; or `pytest -p irtool.expect`).

Two forms, both rewritten by `pytest --accept` (`--accept=names`: only texts in which nothing but names of values changed; `IRTOOL_ACCEPT=1`
is the same as the option; all are refused where `CI` is set):

- Case files `**/expect/**/*.ir`: a sentence, a command, an input, the expected output (`irtool.expect.cases`).
- The fixture `expect(text, subname=None)`, which compares `str(text)` with `expect/<Class>.<test>[-<subname>].expect` beside the test's
  file (`<module>.<test>` for a test outside a class).

A file under `expect/` that no test claims fails a full run.

    plugin          the hooks
    cases           case files; commands: their commands; run_lines: `# run:` lines; patterns: `# CHECK:` lines
    case_compare    the difference of two texts, and whether only names differ
"""
from irtool.expect.plugin import expect, pytest_addoption, pytest_collect_file, pytest_configure, pytest_runtest_makereport

__all__ = ["expect", "pytest_addoption", "pytest_collect_file", "pytest_configure", "pytest_runtest_makereport"]
