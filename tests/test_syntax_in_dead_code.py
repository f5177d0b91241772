"""What torch's front end refuses wherever it stands: in code that runs, after a return, and in branches that are not compiled."""
from __future__ import annotations

import pytest

import irtool

REFUSED = {
    "y = f'{x!r}'": "Don't support conversion in JoinedStr", "y = f'{x:3d}'": "Don't support formatting in JoinedStr",
    "y = [i for i in range(3) if i]": "Comprehension ifs are not supported yet",
    "y = {i: i for i in [1] if i}": "Comprehension ifs are not supported yet",
    "y = [i for i in [1] for j in [2]]": "Only a single generator is currently supported",
    "g(**x)": "keyword-arg expansion is not supported", "print(x, g(**x))": "keyword-arg expansion is not supported",
    "raise": "raise without an exception", "y: int": "without assigned value aren't supported",
    "for i in [1]: pass\nelse: pass": "else branches of for loops aren't supported",
    "while x > 0: pass\nelse: pass": "else branches of while loops aren't supported",
    "break": "'break' outside loop", "continue": "'continue' outside loop", "if x > 0: break": "'break' outside loop",
    "y = b'abc'": "Unknown Constant expression type bytes", "y = +x": "unsupported unary operator: UAdd",
    "y = {**{1: 2}}": "Dict expansion", "y = lambda a: a": "aren't supported", "try: pass\nfinally: pass": "try blocks aren't supported",
    "global z": "aren't supported", "y = (z := 3)": "aren't supported", "y = {1, 2}": "aren't supported", "import os": "aren't supported",
}
PLACES = {
    "runs": "def f(x: int):\n{0}\n    return x\n", "after a return": "def f(x: int):\n    return x\n{0}\n",
    "after a raise": "def f(x: int):\n    raise ValueError('a')\n{0}\n", "never": "def f(x: int):\n    if False:\n{1}\n    return x\n",
    "outside of scripts": "def f(x: int):\n    if not torch.jit.is_scripting():\n{1}\n    return x\n",
    "for None": "def f(x: int):\n    y: Optional[int] = None\n    if y is not None:\n{1}\n    return x\n",
    "after a break": "def f(x: int):\n    for i in range(x):\n        if i > 0:\n            return x\n    return 1\n{0}\n",
}


def indented(code: str, by: int) -> str:
    return "\n".join([" " * by + line for line in code.splitlines()])


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("code", REFUSED)
def test_refused(code: str, place: str) -> None:
    with pytest.raises(irtool.ParseError, match=REFUSED[code]):
        irtool.from_script(PLACES[place].format(indented(code, 4), indented(code, 8)))


@pytest.mark.parametrize("code", ["for i in [1]:\n    break", "while x > 0:\n    if x > 1: continue\n    x -= 1", "y = [i for i in [1]]",
                                  "y = f'{x}'", "y: int = 1", "print(x, sep='')"])
def test_taken_where_it_never_runs(code: str) -> None:
    for place in ("after a return", "never", "outside of scripts"):
        irtool.from_script(PLACES[place].format(indented(code, 4), indented(code, 8)))
