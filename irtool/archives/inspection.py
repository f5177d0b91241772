"""The content of an archive: versions, classes, weights, operators and what irtool supports of each, and other records."""
from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from irtool.interop import npz
from irtool.ir.errors import Error
from irtool.ir.graph import Graph
from irtool.ir.schema import schema_of
from irtool.ops.call import overload
from irtool.ops.op import Op
from irtool.ops.quantized import Quantized
from irtool.ops.structure import Object

if TYPE_CHECKING:
    from irtool.archives.archive import Archive
    from irtool.archives.script_module import ScriptModule
    from irtool.torchscript.class_definitions import ClassDefinition


def inspected_weights(weights: npz.Archive, file: str) -> dict[str, Any]:
    """The content of a file of weights, in the form that `inspected` has."""
    return {"schema": 1, "file": file, "kind": "weights", "format_version": None, "producer": "", "classes": [],
            "weights": [row(name, array, None) | ({"dtype": "bfloat16"} if name in weights.bfloat16 else {})
                        for name, array in weights.arrays.items()],
            "operators": [], "problems": [], "extra_files": {}}


def row(name: str, array: Any, is_parameter: bool | None) -> dict[str, Any]:
    """The entry of an array."""
    stored = array.int_repr() if isinstance(array, Quantized) else array
    return {"name": name, "dtype": str(array.dtype).removeprefix("torch."), "shape": list(stored.shape), "bytes": int(stored.nbytes),
            "is_parameter": is_parameter}


def inspected(module: ScriptModule) -> dict[str, Any]:
    """The content of a module's archive, as JSON. Only the front end runs, on every method of every class that has an instance."""
    archive = module._program.archive
    container = archive.container
    operators, problems = operators_of(module)
    parameters = {name for name, _ in module.named_parameters()}
    return {
        "schema": 1,
        "file": container.name,
        "kind": "TorchScript archive",
        "format_version": archive.version,
        "producer": producer(archive),
        "classes": [described(definition) for definition in classes_of(module)],
        "weights": [row(name, array, name in parameters) for name, array in module.state_dict().items()],
        "operators": operators,
        "problems": problems,
        "extra_files": {name.removeprefix("extra/"): container.size(name) for name in container.names("extra/")},
    }


def producer(archive: Archive) -> str:
    """The program that wrote the file, if the file says it: torch writes `PyTorch` and a version into the record `producer`."""
    for record in (".data/producer", "producer"):
        if record in archive.container:
            return archive.container.text(record, 200).strip()
    return ""


def classes_of(module: ScriptModule) -> list[ClassDefinition]:
    """The classes of the instances in the archive, those of outer ones first."""
    known: dict[str, ClassDefinition] = {}
    todo: list[Any] = [module._instance]
    seen: set[int] = set()
    while todo:
        each = todo.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, Object) and str(each.type) not in known and not str(each.type).startswith("__torch__.torch.classes."):
            known[str(each.type)] = module._program.library.definition(each.type)
        if isinstance(each, Object):
            todo += reversed(each.attributes.values())
        elif isinstance(each, list | tuple):
            todo += reversed(each)
        elif isinstance(each, dict):
            todo += reversed(each.values())
    return list(known.values())


def described(definition: ClassDefinition) -> dict[str, Any]:
    """The entry of a class: its methods, and its attributes with their types."""
    return {"name": str(definition.type), "methods": list(definition.methods),
            "attributes": {name: str(definition.attributes[name]) for name in definition.declared}}


def operators_of(module: ScriptModule) -> tuple[list[dict[str, Any]], list[str]]:
    """The operators of all methods, with the number of their calls, and the errors of methods that do not compile."""
    counts: Counter[str] = Counter()
    problems: list[str] = []
    done: set[str] = set()
    for definition in classes_of(module):
        for name in definition.methods:
            try:
                count_operators(module, module._program.library.method(definition.type, name), counts, done)
            except Error as error:
                problems.append(f"{definition.type}.{name}: {error.message}")
    rows = []
    for name, count in counts.most_common():
        op = op_of(name)
        rows.append({"name": name, "count": count, "has_kernel": op is not None, "gradient": gradient_of(op, name)})
    return rows, problems


def gradient_of(op: Op | None, name: str) -> str:
    """`yes`; `none` if the operator has no gradient; `missing` if irtool does not have its gradient."""
    if op is None:
        return "missing"
    names = {name, *op.names}       # an in-place operator has the gradient of the plain one
    if names & op.formulas.keys():
        return "yes"
    is_plain = op.family in ("list", "dict", "string", "scalar")        # gradients follow lists by position
    return "none" if is_plain or names & op.no_gradient.keys() else "missing"


def op_of(name: str) -> Op | None:
    """The stanza of an overload; None if it has none."""
    try:
        return overload(name).op
    except (Error, KeyError):
        return None


def count_operators(module: ScriptModule, graph: Graph, counts: Counter[str], done: set[str]) -> None:
    """Count the operators of one method, and of the functions that it calls, each once."""
    todo = [graph]
    while todo:
        for node in todo.pop().walk():
            if node.kind == "prim::CallFunction":
                name = str(node.inputs[0].node.attributes["name"].value)
                called = None if name in done else module._program.library.function(name)
                done.add(name)
                if called is not None:
                    todo.append(called)
            elif not node.kind.startswith("prim::"):
                schema = schema_of(node)
                counts[schema.name if schema is not None else node.kind] += 1
