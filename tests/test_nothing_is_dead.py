"""Removal of dead nodes finds early that nothing is dead: it removes what it would have removed."""
from __future__ import annotations

import random
from pathlib import Path

import pytest

import irtool
from irtool.analysis import liveness

FILES = sorted((Path(__file__).parent / "data" / "corpus").glob("*.txt"))


def removed(text: str, monkeypatch: pytest.MonkeyPatch, early: bool) -> str:
    """The text of a module without its dead nodes."""
    module = irtool.parse(text)
    with monkeypatch.context() as patch:
        if not early:
            patch.setattr(liveness, "_is_all_read", lambda graph: False)
        for graph in module.graphs:
            liveness.remove_dead_nodes(graph)
    return str(module)


def branches(rng: random.Random) -> str:
    """A graph of nested branches: each value is read with a probability of this graph, later in its block or in an inner one."""
    lines, names, share = ["graph(%x : Tensor, %c : bool):"], [0], rng.choice((0.5, 0.9, 1.0))

    def new() -> str:
        names[0] += 1
        return f"%{names[0]}"

    def block(known: list[str], indent: str, depth: int, results: int) -> list[str]:
        known, unread = list(known), list[str]()
        for _ in range(rng.randint(1, 3)):
            if depth and rng.random() < 0.4:
                outputs = [new() for _ in range(rng.randint(0, 2))]
                lines.append(f"{indent}{', '.join(f'{each} : Tensor' for each in outputs)} = prim::If(%c)")
                for i in range(2):
                    lines.append(f"{indent}  block{i}():")
                    inner = block(known, f"{indent}    ", depth - 1, len(outputs))
                    lines.append(f"{indent}    -> ({', '.join(inner)})")
                unread += outputs
            else:
                kind = rng.choice(("aten::tanh", "aten::neg", *(("aten::relu_", "prim::Print") if share == 0.5 else ())))
                operand = unread.pop() if unread and rng.random() < share else rng.choice(known)
                result = new()
                lines.append(f"{indent}{result} : Tensor = {kind}({operand})" if kind != "prim::Print" else f"{indent} = {kind}({operand})")
                if kind == "prim::Print":
                    continue
                unread.append(result)
            known += unread
        while len(unread) > 1 and rng.random() < share:
            result = new()
            lines.append(f"{indent}{result} : Tensor = aten::mul({unread.pop()}, {unread.pop()})")
            unread.append(result)
        return [unread.pop() if unread and rng.random() < share else rng.choice(known) for _ in range(results)]

    result = block(["%x"], "  ", 3, 1)
    return "\n".join([*lines, f"  return ({result[0]})", ""])


def test_of_branches(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, early, with_branches = random.Random(7), 0, 0
    for _ in range(400):
        text = branches(rng)
        assert removed(text, monkeypatch, True) == removed(text, monkeypatch, False), text
        found = liveness._is_all_read(irtool.parse(text).graphs[0])
        early += found
        with_branches += found and "prim::If" in text
    assert early > 40 and with_branches > 20       # the law says something


def test_of_real_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    for path in FILES:
        assert removed(path.read_text(), monkeypatch, True) == removed(path.read_text(), monkeypatch, False), path.name
