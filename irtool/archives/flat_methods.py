"""Methods of a module as graphs that passes can rewrite and that can be saved: calls are inlined, attributes are inputs, outputs or
constants.

`frozen(module)` is `torch.jit.freeze`: attributes that no method writes become constants. `flattened(module)` makes no attribute a
constant.
"""
from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from irtool.accepted_values import arrays_in, overlapping
from irtool.analysis.liveness import remove_dead_nodes
from irtool.archives.freezing import WITH_LITERALS, freeze
from irtool.archives.lowering import Lowered, Place, UnknownInstance
from irtool.archives.method_source import Method, Path
from irtool.archives.module_writer import Held, write_methods
from irtool.ir.defaults import DEFAULTS, spelled
from irtool.ir.edits import clone_graph
from irtool.ir.errors import RunError, UnsupportedError, did_you_mean
from irtool.ir.graph import Graph
from irtool.ops.arrays import is_array
from irtool.ops.structure import Object
from irtool.torchscript.library import Library

if TYPE_CHECKING:
    from irtool.archives.script_module import ScriptModule


class FlatModule:
    """Methods, and the attributes that they read or write, by path in the module."""

    def __init__(self, name: str, methods: Sequence[Method], attributes: dict[Path, Held], library: Library) -> None:
        self.library = library
        self.name = name
        self.methods = methods
        self.attributes = attributes

    def archive(self) -> bytes:
        """The module as an archive. Raises UnsupportedError for what has no source."""
        file = io.BytesIO()
        write_methods(file, self.methods, self.attributes, self.name, self.library)
        return file.getvalue()


def frozen(module: ScriptModule, preserve: Iterable[str] = ()) -> FlatModule:
    """`forward` and the methods in `preserve`, with constants for attributes that none of them writes and `preserve` does not name.

    Raises RunError for a module in training mode, and for a name in `preserve` that the module does not have; UnsupportedError for methods
    whose instances are known only when they run.
    """
    if isinstance(preserve, str):
        raise RunError(f"freeze: preserve={preserve!r}: expected a list of names", code="E0402")
    if module._instance.attributes.get("training") is True:
        raise RunError("freeze: the module trains, and frozen modules do not: call eval() first (on the command line: freeze{eval})",
                       code="E0402")
    names = list(dict.fromkeys([each for each in ("forward", *preserve) if each in module.methods()]))
    stays: dict[Place, Path] = {}
    for each in preserve:
        if each in module.methods():
            continue
        path = tuple(each.split("."))
        holder: Any = module._instance
        for index, part in enumerate(path):
            attributes = holder.attributes if isinstance(holder, Object) else {}
            if part not in attributes:
                known = [*module._instance.attributes, *module.methods()]
                raise RunError(f"freeze: the module has no attribute or method '{each}'{did_you_mean(each, known)}", code="E0402")
            if index < len(path) - 1:
                holder = attributes[part]
        if isinstance(holder.attributes[path[-1]], Object):
            raise UnsupportedError(f"freeze: '{each}' is a module: only methods and values can be preserved", code="E0404")
        stays[id(holder), path[-1]] = path
    if not names:
        raise RunError("freeze: the module has no method 'forward'; name one in preserve", code="E0402")
    return flat(module, names, stays)


def flattened(module: ScriptModule) -> FlatModule:
    """The methods of the module itself, with attributes that are read and written as before; without `__getstate__` and `__setstate__`.
    Raises UnsupportedError."""
    every = {(id(instance), name): (*path, name) for path, instance in instances_of(module._instance)
             for name, value in instance.attributes.items() if not isinstance(value, Object)}
    # the archive contains the attributes themselves, which a `__setstate__` would take for what `__getstate__` gives
    return flat(module, [name for name in module.methods() if name not in ("__getstate__", "__setstate__")], every)


def flat(module: ScriptModule, names: Sequence[str], stays: dict[Place, Path]) -> FlatModule:
    """Methods by name; `stays`: attributes that do not become constants."""
    definition = module._program.library.definition(module._instance.type)
    if any(definition.lists.get(f"__forward_{which}__") for which in ("pre_hooks", "hooks")):
        raise UnsupportedError("the module has hooks, which rewritten modules have not: not supported", code="E0404")
    paths = {id(instance): path for path, instance in reversed(instances_of(module._instance))}
    varying = set(stays)
    while True:
        lowered = [lowered_method(module, name, varying) for name in names]
        written = {place_of(each) for method in lowered
                   for each in (*method.assigned, *[method.sources[index] for index in method.changed])}
        read = {place_of(source): source for method in lowered for source in (*method.sources, *method.assigned)}
        shared = sharing(read, varying | written)
        if written | shared <= varying:
            break
        varying |= written | shared
    attributes = {path: held(module, *at(module, path)) for path in stays.values()}
    methods = []
    for name, method in zip(names, lowered, strict=True):
        reads, graph = frozen_graph(method, varying)
        writes = [(*paths[id(holder)], key) for holder, key in method.assigned]
        method_paths = [(*paths[id(holder)], key) for holder, key in reads]
        for path, (holder, key) in zip([*method_paths, *writes], [*reads, *method.assigned], strict=True):
            attributes[path] = held(module, holder, key)
        run = module.method(name)
        graph.name = name
        defaults = {value.name: run.parameters.defaults[each]
                    for value, each in zip(graph.inputs, run.parameters.names, strict=False) if each in run.parameters.defaults}
        if literals := {each: value for each, value in defaults.items() if isinstance(value, WITH_LITERALS)}:
            graph.metadata[DEFAULTS] = spelled(literals)
        methods.append(Method(name, graph, method_paths, writes, defaults))
    return FlatModule(str(module._instance.type).rpartition(".")[2], methods, attributes, module._program.library)


def lowered_method(module: ScriptModule, name: str, varying: set[Place]) -> Lowered:
    """A method as a graph without instances. Raises UnsupportedError if its instances are known only when it runs."""
    try:
        return Lowered(module._program.library, module._program.library.method(module._instance.type, name), module._instance, varying)
    except UnknownInstance as unknown:
        raise UnsupportedError(f"{name} hands an instance to {unknown}: it is no graph of arrays", code="E0404") from None


def frozen_graph(method: Lowered, varying: set[Place]) -> tuple[list[tuple[Object, str]], Graph]:
    """A method's graph, with constants for attributes that do not vary; the others are inputs after its arguments."""
    graph = clone_graph(method.graph)
    graph.block.set_outputs(graph.outputs[:method.result_count + len(method.assigned)])
    first = len(graph.inputs) - len(method.sources)
    constants: dict[str | int, Any] = {first + index: holder.attributes[key] for index, (holder, key) in enumerate(method.sources)
                                       if (id(holder), key) not in varying}
    result = freeze(graph, constants)
    remove_dead_nodes(result)
    return [source for source in method.sources if place_of(source) in varying], result


def sharing(read: dict[Place, tuple[Object, str]], varying: set[Place]) -> set[Place]:
    """The attributes that share memory with one that varies."""
    places: dict[int, set[Place]] = {}      # one array may be several attributes
    for place, (holder, key) in read.items():
        for array in arrays_in(holder.attributes[key]):
            places.setdefault(id(array), set()).add(place)
    groups = overlapping([array for holder, key in read.values() for array in arrays_in(holder.attributes[key])])
    shared: set[Place] = set()
    for group in groups:
        members = {place for array, _, _ in group for place in places[id(array)]}
        if members & varying:
            shared |= members
    return shared


def place_of(attribute: tuple[Object, str]) -> Place:
    """The key of an attribute."""
    return id(attribute[0]), attribute[1]


def at(module: ScriptModule, path: Path) -> tuple[Object, str]:
    """The instance and the name of the attribute at a path."""
    holder = module._instance
    for part in path[:-1]:
        holder = holder.attributes[part]
    return holder, path[-1]


def held(module: ScriptModule, holder: Object, name: str) -> Held:
    """An attribute, with its declarations in the archive."""
    definition = module._program.library.definition(holder.type)
    value = holder.attributes[name]
    kind = next((each for each in ("__parameters__", "__buffers__") if name in definition.lists.get(each, ())), "")
    known = module._program.trainable.get(id(value)) if is_array(value) else None
    return Held(value, definition.attributes[name], kind, known is not None and known[1])


def instances_of(root: Object) -> list[tuple[Path, Object]]:
    """Instances by path, outer ones first, each once."""
    known: list[tuple[Path, Object]] = [((), root)]
    seen = {id(root)}
    for path, instance in known:        # more instances are added during the loop
        for name, value in instance.attributes.items():
            if isinstance(value, Object) and id(value) not in seen:
                seen.add(id(value))
                known.append(((*path, name), value))
    return known
