"""Graphs as a module in an archive: a class with a method for each, and instances with the remaining attributes."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

from irtool.archives.method_source import FILE, ArchiveSource, Method, MethodPrinter, Path, is_plain_name, version_of
from irtool.archives.pickle_writer import PickleWriter, World
from irtool.archives.storage_writer import StorageWriter
from irtool.archives.zip_writer import ZipWriter
from irtool.ir.errors import Error, UnsupportedError
from irtool.ir.graph import Graph
from irtool.ir.module import Module
from irtool.ir.pair import OF
from irtool.ir.types import Type, parse_type
from irtool.ir.verify import explained
from irtool.ops.structure import EnumMember, Object
from irtool.torchscript.library import Library
from irtool.torchscript.meanings import Enumeration
from irtool.torchscript.printing.legal_names import identifier
from irtool.torchscript.printing.literals import string

MODE = """class {name}:
  prev : bool
{declared}  def __enter__(self: __torch__.torch.autograd.grad_mode.{name}) -> NoneType:
    self.prev = torch.is_grad_enabled()
    torch.set_grad_enabled({mode})
    return None
  def __exit__(self: __torch__.torch.autograd.grad_mode.{name},
    exc_type: Any,
    exc_value: Any,
    traceback: Any) -> NoneType:
    prev = self.prev
    torch.set_grad_enabled(prev)
    return None
  def __init__(self: __torch__.torch.autograd.grad_mode.{name}{parameter}) -> NoneType:
    self.prev = False
{assigned}    return None
"""
"""The class of the object of a `with` that switches gradients on or off, in the form that archives have."""


TAKEN = "torch", "irtool", "Module"
"""Names under `__torch__` that have another meaning."""


class Held(NamedTuple):
    """An attribute: its value, its type, and whether it is a parameter, a buffer, or neither (`__parameters__`, `__buffers__`, "")."""

    value: Any
    type: Type
    kind: str = ""
    requires_grad: bool = False


def of_graphs(graphs: Graph | Module) -> list[Method]:
    """The methods of a module made of graphs: a single graph is `forward`; of several, each has its name, and the first is `forward` if
    none is called so."""
    if isinstance(graphs, Graph):
        return [Method("forward", graphs)]
    names = [identifier(name, "forward") for name in graphs.names()]
    if not names:
        raise Error("save: a module without graphs", code="E0001")
    if "forward" not in names:
        names[0] = "forward"
        if len(names) == 2 and OF in graphs.graphs[1].metadata:
            names[1] = "backward"
    return [Method(name, graph) for name, graph in zip(names, graphs.graphs, strict=True)]


def write_methods(file: BinaryIO, methods: Sequence[Method], attributes: Mapping[Path, Held] | None = None, name: str = "Graph",
                  library: Library | None = None) -> None:
    """Write an archive of a module with these methods and attributes into a seekable file. Raises Error for what has no source.

    library: defines the classes that graphs and attributes mention.
    """
    name = identifier(name, "Graph")
    source = ArchiveSource(library)
    tree = Tree(f"__torch__.{name}{'_' * (name in TAKEN)}", attributes or {}, source)
    for method in methods:
        with explained(method.graph):
            source.prepare(method.graph)
    bodies = []
    for method in methods:
        with explained(method.graph):
            bodies.append(MethodPrinter(source, method, tree.classes[()]).function(method.name))
    code = {tree.classes[()].rpartition(".")[0]: tree.text(bodies)}
    if source.functions:
        code[FILE] = source.text()
    if source.managers:
        code["__torch__.torch.autograd.grad_mode"] = "\n".join([grad_mode(each) for each in sorted(source.managers)])
    records = ZipWriter(file)
    storages = StorageWriter()
    state = PickleWriter(tree, storages).write(tree.root, tree.root.type)
    for stored in storages.stored:
        records.write(f"data/{stored.key}", stored.elements())
    records.write("data.pkl", state)
    for path, text in with_classes(code, source.classes).items():
        records.write(f"code/{path.replace('.', '/')}.py", text.encode(), is_code=True)
    storages = StorageWriter()
    constants = PickleWriter(tree, storages).write(tuple(source.values), None)
    for stored in storages.stored:
        records.write(f"constants/{stored.key}", stored.elements())
    records.write("constants.pkl", constants)
    records.write("version", str(version_of([method.graph for method in methods])).encode())
    records.write("byteorder", b"little")
    records.close()


def with_classes(code: Mapping[str, str], classes: Mapping[str, str]) -> dict[str, str]:
    """Files by module, to which classes are added according to their names."""
    files = dict(code)
    for name, text in classes.items():
        path = name.rpartition(".")[0]
        files[path] = files.get(path, "") + text
    return files


def grad_mode(name: str) -> str:
    """The class of the object of a `with`."""
    word = name.rpartition(".")[2]
    if word != "set_grad_enabled":
        return MODE.format(name=word, mode=word == "enable_grad", declared="", parameter="", assigned="")
    return MODE.format(name=word, mode="self.mode", declared="  mode : bool\n", parameter=",\n    mode: bool",
                       assigned="    self.mode = mode\n")


class Tree(World):
    """The instances of a module to be written, and their classes."""

    def __init__(self, name: str, attributes: Mapping[Path, Held], source: ArchiveSource) -> None:
        self.source = source
        self.held: dict[Path, dict[str, Held]] = {(): {}}
        for path, held in attributes.items():
            for end in range(1, len(path)):
                self.held.setdefault(path[:end], {})
            self.held[path[:-1]][path[-1]] = held
        self.classes = {path: name if not path else f"{name}_{'_'.join([identifier(each, 'part') for each in path])}" for path in self.held}
        taken: set[str] = set()
        for path, each in self.classes.items():
            while each in taken:
                each += "_"
            taken.add(each)
            self.classes[path] = each
        self._requires = {id(held.value): held.requires_grad for held in attributes.values()}
        instances = {path: Object(parse_type(each)) for path, each in self.classes.items()}
        self._held_of = {id(instance): self.held[path] for path, instance in instances.items()}
        self.root = instances[()]
        for path, instance in instances.items():
            if path:
                self.held[path[:-1]][path[-1]] = Held(instance, instance.type)
        for path, instance in instances.items():
            instance.attributes.update({key: held.value for key, held in self.held[path].items()})

    def state(self, instance: Object) -> tuple[Any, Type | Sequence[tuple[str, Type]]]:
        return instance.attributes, [(key, held.type) for key, held in self._held_of[id(instance)].items()]

    def number(self, member: EnumMember) -> Any:
        known = self.source.archive_library.class_called(member.owner) if self.source.archive_library is not None else None
        if not isinstance(known, Enumeration):
            raise UnsupportedError(f"save: the value of {member} is not known", code="E0404")
        return known.members[member.name]

    def class_name(self, type: Type) -> str:
        return self.source.class_name(type)

    def requires_grad(self, array: Any) -> bool:
        return self._requires.get(id(array), False)

    def text(self, methods: Sequence[str]) -> str:
        """The source of the classes. Raises UnsupportedError for attributes of types without a spelling."""
        lines: list[str] = []
        for path in self.held:
            lines += [f"class {self.classes[path].rpartition('.')[2]}(Module):"]
            for kind in ("__parameters__", "__buffers__"):
                names = [string(key) + ", " for key, held in self.held[path].items() if held.kind == kind]
                lines.append(f"  {kind} = [{''.join(names)}]")
            for key, held in self.held[path].items():
                spelled = self.source.annotation(held.type)
                lines.append(f"  {key} : {spelled}" if is_plain_name(key) else f"  __annotations__[{string(key)}] = {spelled}")
            if not path:
                lines += ["  " + each.rstrip("\n") for each in methods]
        return "\n".join([*lines, ""])
