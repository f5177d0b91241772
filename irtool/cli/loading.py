"""`--load FILE.py`: executes a user's file before the command runs, and adds the passes and operators that it defines."""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from irtool.cli.console import Console


def load_files(paths: list[str], console: Console) -> None:
    """Execute files; each function whose first parameter is annotated `Graph` or `Module` is a pass, unless its name begins with `_` or
    another file defines it. Operators enter by `@irtool.operator`. Raises UsageError, or Error with the place."""
    from irtool.passes import add_pass, is_pass

    for path in paths:
        for name, value in load_python(path, console).items():
            code = getattr(value, "__code__", None)
            if not name.startswith("_") and code is not None and code.co_filename == path and name == value.__name__ and is_pass(value):
                add_pass(value)


def load_python(path: str, console: Console, name: str = "irtool_load") -> dict[str, Any]:
    """Execute a user's Python file; returns its globals. name: its __name__. Raises UsageError, or Error with the line that raised."""
    import runpy

    from irtool.cli.source_places import placed

    console.read(path)
    try:
        return runpy.run_path(path, run_name=name)
    except (Exception, SystemExit) as error:
        raise placed(error, console, path, path) from error
