"""Archives of torch 1.0 to 1.2: `model.json` lists modules and tensors; the file of each module has its methods, but no class.

Each module becomes a class in code that the front end of all archives reads.
"""
from __future__ import annotations

import json
import re
from functools import cached_property
from typing import Any

from irtool.archives.archive import Archive
from irtool.archives.container import Container
from irtool.archives.declared_values import check_attributes
from irtool.ir.source import quoted
from irtool.ops.array_library import np
from irtool.ops.structure import Object
from irtool.torchscript.class_definitions import ClassDefinition

MAX_MODULES = 100_000
RECORD = "model.json"
DTYPES = {"FLOAT": "float32", "DOUBLE": "float64", "FLOAT16": "float16", "UINT8": "uint8", "INT8": "int8", "INT16": "int16",
          "INT32": "int32", "INT64": "int64", "BOOL": "bool"}

BARE_NONE = re.compile(r"\bannotate\((\w+(?:\[\w+\])?), None\)")
"""The None of an optional type, as torch 1.0 prints it."""

ARANGE = re.compile(r"(\btorch\.arange\([^()]*, dtype=)None\b")
"""Before torch 1.3, arange without a dtype returned floats in methods, whatever its bounds."""


class OldArchive(Archive):
    """An archive with `model.json` in place of `data.pkl`."""

    REQUIRED = ()
    CODE = "libs/"

    def __init__(self, container: Container) -> None:
        super().__init__(container)
        self.library.version = 0        # whatever the record says: operators had the meaning that they had in the first form of archives
        self._texts: dict[str, str] = {}
        """By path: the code of a module as a class."""
        try:
            model = json.loads(container.text(RECORD))
        except (ValueError, RecursionError) as error:
            container.fail(RECORD, f"no JSON: {quoted(str(error))}")
        self._model = self._part({"": model}, "", dict)

    def _part(self, row: Any, key: str, kind: type) -> Any:
        """A member of a JSON object; an empty value if it is missing."""
        value = row.get(key, kind())
        if not isinstance(value, kind):
            self.container.fail(RECORD, f"'{key}' is a {type(value).__name__}, expected {kind.__name__}")
        return value

    def _rows(self, row: Any, key: str) -> list[Any]:
        rows = self._part(row, key, list)
        if not all(isinstance(each, dict) for each in rows):
            self.container.fail(RECORD, f"'{key}' contains a value that is no object")
        return list(rows)

    def _number(self, value: Any) -> int:
        if not isinstance(value, str | int) or len(str(value)) > 20 or not str(value).removeprefix("-").isdecimal():
            self.container.fail(RECORD, f"'{quoted(str(value)[:40])}' is no number")
        return int(value)

    def _code(self, path: str) -> str | None:
        record = f"{self.CODE}{path}.py"
        if path in self._texts:
            return self._texts[path]
        return self.container.text(record) if record in self.container else None

    def new_code(self) -> dict[str, str]:
        """The code by record, in the form of archives since torch 1.3. Raises Error."""
        _ = self.root
        texts = {f"code/{path}.py": text for path, text in self._texts.items()}
        return texts | {f"code/{record.removeprefix(self.CODE)}": text for record, text in self.sources().items()}

    @cached_property
    def constants(self) -> tuple[Any, ...]:
        """The tensors, among them those that the code calls `CONSTANTS.c0` and so on."""
        return tuple([self._tensor_of(row) for row in self._rows(self._model, "tensors")])

    def _tensor_of(self, row: Any) -> Any:
        named = self._part(row, "dataType", str) or "FLOAT"
        key = self._part(self._part(row, "data", dict), "key", str)
        if named not in DTYPES or not key.startswith("tensors/") or key not in self.container:
            self.container.fail(RECORD, f"a tensor of {quoted(named)} in the record '{quoted(key)}'")
        self._folder = "tensors"
        storage = self.storage(DTYPES[named], key.removeprefix("tensors/"), self.container.size(key) // np.dtype(DTYPES[named]).itemsize)
        size, stride = (tuple(map(self._number, self._part(row, part, list))) for part in ("dims", "strides"))
        return self._tensor(storage, self._number(row.get("offset", 0)), size, stride, row.get("requiresGrad") is True, None)

    def _row(self, number: Any) -> Any:
        return self._element(self.constants, number, "tensor")

    def _element(self, values: Any, number: Any, what: str) -> Any:
        index = self._number(number)
        if not 0 <= index < len(values):
            self.container.fail(RECORD, f"{what} {index} of {len(values)}")
        return values[index]

    @cached_property
    def _values(self) -> Any:
        return self._unpickled("attributes.pkl", "tensors") if "attributes.pkl" in self.container else ()

    @cached_property
    def root(self) -> Object:
        """The module. Raises Error."""
        modules = [self._part(self._model, "mainModule", dict)]
        parents = [-1]
        for index, module in enumerate(modules):         # modules are added during the loop, after those that contain them
            modules += self._rows(module, "submodules")
            parents += [index] * (len(modules) - len(parents))
            if len(modules) > MAX_MODULES:
                self.container.fail(RECORD, f"more than {MAX_MODULES} modules")
        below: list[dict[str, Object]] = [{} for _ in modules]
        instance: Object | None = None
        for index in range(len(modules) - 1, -1, -1):
            instance = self._module(index, modules[index], dict(reversed(below[index].items())))
            if index:
                below[parents[index]][self._part(modules[index], "name", str)] = instance
        assert instance is not None
        return instance

    def _module(self, index: int, module: Any, below: dict[str, Object]) -> Object:
        """The instance of a module, with a class that has the methods of the module's file."""
        parameters, attributes = self._rows(module, "parameters"), self._rows(module, "attributes")
        types: dict[str, str] = {}
        state: dict[str, Any] = {}
        tensors: dict[bool, list[str]] = {False: [], True: []}
        for each in parameters:
            name = self._part(each, "name", str)
            types[name], state[name] = "Tensor", self._row(each.get("tensorId"))
            tensors[each.get("isBuffer") is True].append(name)
        for each in attributes:
            name = self._part(each, "name", str)
            if name != "__constants__":
                types[name], state[name] = self._part(each, "type", str), self._element(self._values, each.get("id"), "attribute")
                if types[name] == "Tensor":
                    tensors[True].append(name)
        for name, instance in below.items():
            types[name], state[name] = str(instance.type), instance
        name = self._part(module, "name", str)
        name = name if name.isidentifier() and name.isascii() else "Module"
        lines = [f"class {name}(Module):", f"  __parameters__ = {tensors[False]!r}", f"  __buffers__ = {tensors[True]!r}"]
        lines += [f"  __annotations__[{each!r}] = {type}" for each, type in types.items()]
        record = self._part(self._part(module, "torchscriptArena", dict), "key", str)
        code = self.container.text(record).split("\n") if record else []
        code = [BARE_NONE.sub(r"annotate(Optional[\1], None)", line).replace("ops.prim.shape(", "torch.size(") for line in code]
        code = [ARANGE.sub(r"\g<1>6", line) for line in code]
        lines += [f"  {line}" for line in code if line.strip() and not line.startswith(("op_version_set", "import "))]
        path = f"__torch__.model_json._{index}"
        self._texts[path.replace(".", "/")] = "\n".join(lines) + "\n"
        definition = self.library.class_called(f"{path}.{name}")
        if not isinstance(definition, ClassDefinition):
            self.container.fail(record or RECORD, "contains no methods")
        assert isinstance(definition, ClassDefinition)
        instance = Object(definition.type)
        instance.attributes.update(check_attributes(self.container, self.library, definition, state))
        return instance
