"""Gradients of outputs, from an archive or as literals: `vjpK` is that of output K, `vjpK.i` that of element i of a list, or of the
entry of a dict that was inserted as number i."""
from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from irtool.interop.binding import Misfit, Parts, cast_array, children, kind_of, listed, sole
from irtool.interop.npz import Archive
from irtool.ir.errors import Error
from irtool.ir.graph import Graph
from irtool.ir.source import Diagnostic
from irtool.ops.array_library import np

_KEY = re.compile(r"vjp(\d{1,9})((?:\.\d{1,9})*)")
_FORMS = (_KEY, re.compile(r"(\d{1,9})((?:\.\d{1,9})*)"), re.compile(r"arr_(\d{1,9})((?:\.\d{1,9})*)"))
"""The forms of keys in a file that contains only gradients; all keys have one form."""


class Cotangents:
    """The gradients given for the outputs of a graph: by index of the output, the parts of its gradient."""

    def __init__(self, count: int, cast: bool = False) -> None:
        self.count = count
        """The number of outputs."""
        self.cast = cast
        self.parts: dict[int, Parts] = {}

    def take(self, graph: Graph, archive: Archive, literals: dict[str, Any]) -> None:
        """Remove the gradients from the values for the inputs of `graph`, and keep them. Raises Error for an output that does not exist."""
        inputs = {value.name for value in graph.inputs}
        for store in (archive.arrays, literals):
            for key in list(store):
                match = _KEY.fullmatch(key.removeprefix("%"))
                if match is None or match[0] in inputs or f"vjp{match[1]}" in inputs:
                    continue
                self._add(key, int(match[1]), match[2], archive.get(key) if store is archive.arrays else store[key], store is literals)
                del store[key]
        archive.none &= archive.arrays.keys()
        archive.bfloat16 &= archive.arrays.keys()

    def read(self, archive: Archive, filename: str) -> None:
        """Keep the gradients of a separate file. Raises Error for keys that name no output."""
        keys = list(archive.arrays)
        form = next((form for form in _FORMS if all(form.fullmatch(key) for key in keys)), None)
        if form is None:
            surplus = [key for key in keys if not _KEY.fullmatch(key)]
            raise Error(diagnostics=[Diagnostic("error", f"{filename}: no cotangent is called {listed(surplus)}", notes=[Diagnostic(
                "note", f"expected {listed(f'vjp{i}' for i in range(self.count))}, found {listed(keys)}")])], code="E0503")
        for key in keys:
            match = form.fullmatch(key)
            assert match is not None
            self._add(key, int(match[1]), match[2], archive.get(key), False)

    def _add(self, key: str, index: int, rest: str, value: Any, replaces: bool) -> None:
        if index >= self.count:
            raise Error(f"'{key}': the graph has {self.count} output{'s' if self.count != 1 else ''}, "
                        f"expected {listed(f'vjp{i}' for i in range(self.count))}", code="E0503")
        parts = self.parts.setdefault(index, {})
        if rest in parts and not replaces:
            raise Error(f"'{key}': given twice, among the inputs and with --cotangents", code="E0503")
        if not rest:
            parts.clear()
        parts[rest] = value

    def fitted(self, outputs: list[Any]) -> dict[int, Any]:
        """By index of an output, the gradient given for it, with the output's structure, shape and dtype: arrays, lists of arrays or None.

        Raises Error with a diagnostic for each gradient that does not fit.
        """
        problems: list[Diagnostic] = []
        out: dict[int, Any] = {}
        for index, parts in sorted(self.parts.items()):
            try:
                out[index] = _fitted(parts, outputs[index], self.cast)
            except Misfit as misfit:
                notes = [Diagnostic("note", misfit.remedy)] if misfit.remedy else []
                problems.append(Diagnostic("error", f"cotangent 'vjp{index}': expected {misfit.expected or kind_of(outputs[index])}, "
                                                    f"got {misfit.actual}", notes=notes))
        if problems:
            raise Error(diagnostics=problems, code="E0503")
        return out


def _fitted(parts: Mapping[str, Any], output: Any, cast: bool) -> Any:
    """One gradient for an output; for a dict a list, in the order of its entries. Raises Misfit."""
    if isinstance(output, dict):
        return _fitted(parts, list(output.values()), cast)
    if isinstance(output, list | tuple):
        return _fitted_elements(dict(parts), output, cast)
    value = sole(dict(parts))
    if value is None:
        return None
    if not isinstance(output, np.ndarray | np.generic) or output.dtype.kind not in "fc":
        raise Misfit(kind_of(value), expected=f"nothing, since output is {kind_of(output)} and has no gradient")
    if isinstance(value, bool | int | float | complex) and not isinstance(value, np.generic):
        try:
            value = np.array(value, output.dtype)
        except (OverflowError, TypeError):
            raise Misfit(kind_of(value)) from None
    if not isinstance(value, np.ndarray) or value.dtype.kind == "U" or value.shape != output.shape:
        raise Misfit(kind_of(value))
    return cast_array(value, output.dtype.name, cast)


def _fitted_elements(parts: Parts, output: list[Any] | tuple[Any, ...], cast: bool) -> list[Any]:
    """One gradient per element of a list or tuple, None for absent ones. Raises Misfit."""
    expected = f"gradients of {len(output)} elements"
    if list(parts) == [""]:
        whole = parts[""]
        if whole is None:
            return [None] * len(output)
        if not isinstance(whole, list | tuple) or len(whole) != len(output):
            raise Misfit(f"{len(whole)} elements" if isinstance(whole, list | tuple) else kind_of(whole), expected=expected)
        return [_fitted({"": each}, one, cast) for each, one in zip(whole, output, strict=True)]
    elements = children(parts)
    surplus = [word for word in elements if not word or int(word) >= len(output)]
    if surplus:
        raise Misfit(f"an element {listed(surplus)}", expected=expected)
    return [_fitted(elements[str(i)], one, cast) if str(i) in elements else None for i, one in enumerate(output)]
