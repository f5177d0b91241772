"""Which small programs the script front end takes, and what they give: as torch does."""
from __future__ import annotations

import json

import pytest

import irtool
from tests.script_decisions import HEADER, programs, runs_of
from tests.script_programs import FOLDER, agree, as_json, inputs_of

RECORDED = json.loads((FOLDER / "decisions.json").read_text())


def decision(source: str) -> object:
    """The results of a program, or None if it is refused."""
    try:
        graph = irtool.from_script(HEADER + source, name="f").graph("f")
    except irtool.Error:
        return None
    results: list[object] = []
    for line in runs_of(source):
        try:
            results.append(as_json(irtool.run(graph, inputs_of(line))[0]))
        except irtool.RunError:
            results.append("error")
    return results


def test_what_torch_compiles_is_compiled_and_what_it_refuses_is_refused() -> None:
    every = programs()
    assert len(every) == len(RECORDED)
    wrong = [f"{source}\ntorch: {wanted}\nhere: {found}" for source, wanted in zip(every, RECORDED, strict=True)
             if not agree(found := decision(source), wanted)]
    assert not wrong, f"{len(wrong)} of {len(every)}:\n" + "\n\n".join(wrong[:5])


@pytest.mark.oracle
def test_decisions_are_torchs() -> None:
    from tests.record_script import record_decisions

    assert agree(record_decisions(), RECORDED)
