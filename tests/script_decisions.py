"""Small programs of one function `f` each, of which torch compiles some and refuses others: those of tests/data/script/decisions.txt, and
tables of conditions that narrow the type of a variable, and of functions of the file that have the name of one of Python's.

Lines `# run: 1, True` above the function are inputs to run it on.
"""
from __future__ import annotations

from tests.script_programs import FOLDER

HEADER = "from typing import *\nimport torch\nimport math\nfrom enum import Enum\nfrom torch import Tensor\n"
NARROWED: dict[str, tuple[list[str], list[str], list[str]]] = {
    "Union[int, float, str]": (["2, True", "1.5, False", "'abc', True"], ["x + 1", "len(x)", "x + 'a'"], [
        "isinstance(x, int) or isinstance(x, float)", "isinstance(x, int) and isinstance(x, float)",
        "isinstance(x, (int, str)) and isinstance(x, (str, float))", "isinstance(x, (int, float)) and isinstance(x, int)",
        "not isinstance(x, int) and not isinstance(x, str)", "not isinstance(x, int) or isinstance(x, int)",
        "isinstance(x, int) or isinstance(x, int)", "not (isinstance(x, int) and isinstance(x, float))",
        "isinstance(x, int) or isinstance(x, float) or isinstance(x, str)", "isinstance(x, (int, float, str)) and isinstance(x, int)",
        "isinstance(x, int) and isinstance(x, (int, float, str))", "isinstance(x, int) or c", "c and isinstance(x, int)",
        "isinstance(x, (int, float)) and c and isinstance(x, int)", "True and isinstance(x, int)", "isinstance(x, int) or False"]),
    "Optional[Union[int, str]]": (["2, True", "None, True", "'abc', False"], ["x + 1", "x + 'a'"], [
        "x is not None and isinstance(x, int)", "x is None or isinstance(x, int)", "isinstance(x, int) and x is not None",
        "x is not None and isinstance(x, (int, str)) and isinstance(x, int)", "x is not None and not isinstance(x, int)",
        "not (x is None or isinstance(x, int))", "x is not None or isinstance(x, int)", "x is not None or x is not None"]),
    "Optional[int]": (["2, True", "None, False", "0, False"], ["x + 1"], [
        "x is not None and x > 1", "x is None or x > 1", "x is not None or c", "x is not None and isinstance(x, int)",
        "x is None or isinstance(x, int)", "c and x is not None and x > 0", "not (x is None) and not (x is None)",
        "(x is not None and c) or (x is not None and not c)", "(x is None or c) and (x is None or c)"]),
    "Union[int, str]": (["2, True", "'abc', False"], ["x + 1", "x + 'a'"], [
        "isinstance(x, (int, str)) and isinstance(x, int)", "isinstance(x, int) and isinstance(x, str)", "x is None or isinstance(x, int)",
        "isinstance(x, float) or isinstance(x, int)", "not isinstance(x, float) and isinstance(x, int)"]),
    "Any": (["2, True", "1.5, True"], ["x + 1"], [
        "isinstance(x, int) or isinstance(x, float)", "isinstance(x, (int, str)) and isinstance(x, int)", "isinstance(x, int) and c",
        "isinstance(x, int) and isinstance(x, (int, str))"]),
    "Optional[List[int]]": (["[4], True", "None, False"], ["x[0]"], [
        "x is not None or x is not None", "isinstance(x, List[int]) or isinstance(x, List[int])",
        "x is not None or isinstance(x, List[int])"]),
}
"""Type of x -> inputs, expressions of x, and conditions."""
FORMS = [
    "    if {condition}:\n        return str({use})\n    return 'no'\n",
    "    if {condition}:\n        return 'yes'\n    return str({use})\n",
    "    return str({use}) if {condition} else 'no'\n", "    assert {condition}\n    return str({use})\n",
]
"""Statements that use a condition, and x where it holds or where it does not."""
NAMES = ("print tuple float int bool complex str getattr hasattr isinstance len hex oct round hash min max abs all any divmod sum list "
         "dict ord chr bin pow range zip enumerate sorted rangelist _to_tensor AssertionError reversed type repr set map filter next open "
         "slice")
"""Names of functions that a file defines; torch calls its own function of the name, where it has one."""
ARGUMENTS = {"int": "3", "List[int]": "[1, 2]"}


def programs() -> list[str]:
    """All programs, without the header."""
    made = []
    for type, (inputs, uses, conditions) in NARROWED.items():
        runs = "".join(f"# run: {line}\n" for line in inputs)
        for condition in conditions:
            bodies = [form.format(condition=condition, use=use) for use in uses for form in FORMS]
            made += [f"{runs}def f(x: {type}, c: bool):\n{body}" for body in bodies]
    for name in NAMES.split():
        made += [f"def {name}(x: {type}) -> str:\n    return 'its own'\n# run: {value}\ndef f(x: {type}):\n    return {name}(x)\n"
                 for type, value in ARGUMENTS.items()]
    return [*(FOLDER / "decisions.txt").read_text().split("# ====\n"), *made]


def runs_of(source: str) -> list[str]:
    """The inputs to run a program on."""
    return [line[6:].strip() for line in source.split("\n") if line.startswith("# run:")]
