"""`ScriptModule`: an instance of an archive's class, with its methods, attributes and submodules."""
from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from irtool.accepted_values import accepted
from irtool.archives.archive import Archive
from irtool.archives.calling import MethodRun, Program, source_of
from irtool.archives.declared_values import View, fits, inward
from irtool.archives.module_call import CALL
from irtool.archives.opening import opened
from irtool.archives.replacing import Replaced
from irtool.archives.state import Keys, convert, copy_of, load_state_dict
from irtool.ir.arguments import check_flag, misfit
from irtool.ir.edits import clone_graph
from irtool.ir.errors import Error, NameMissing, RunError
from irtool.ir.graph import Graph
from irtool.ir.types import OptionalType, TensorType
from irtool.ops.arrays import is_array
from irtool.ops.structure import Object
from irtool.ops.tensor import unwrapped
from irtool.torchscript.class_definitions import ClassDefinition
from irtool.torchscript.front import declared_default


class ScriptModule(View):
    """A module of an archive. Its methods, attributes and submodules are Python attributes; `module(...)` runs `forward`.

    Tensors in arguments and results are NumPy arrays. Values that a method writes into attributes remain for the next call.
    """

    __slots__ = ("_definition", "_program")

    def __init__(self, instance: Object, program: Program) -> None:
        set_ = object.__setattr__
        set_(self, "_instance", instance)
        set_(self, "_definition", program.library.definition(instance.type))
        set_(self, "_program", program)

    @classmethod
    def of_archive(cls, archive: Archive) -> ScriptModule:
        """The module of an archive. Raises Error."""
        return cls(archive.root, Program(archive, cls, archive.trainable))

    _definition: ClassDefinition
    _program: Program

    # -- methods
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The result of `forward`, with the module's hooks before and after it. Raises RunError."""
        return self.method(CALL)(*args, **kwargs)

    def method(self, name: str) -> MethodRun:
        """A method by name; `__call__` is `forward` with its hooks. Raises RunError for an unknown name."""
        return self._program.method(self._instance, name)

    def methods(self) -> list[str]:
        """Names of the methods."""
        return list(self._definition.methods)

    def code(self, method: str | None = None) -> str:
        """The archive's source, file by file, or that of one method. Raises RunError for an unknown method."""
        if method is None:
            return "\n".join(f"# {record}\n{text}" for record, text in self._program.archive.sources().items())
        return source_of(self.method(method).function)

    def inspect(self) -> dict[str, Any]:
        """The dict that `irtool inspect --json` prints."""
        from irtool.archives.inspection import inspected

        return inspected(self)

    def freeze(self, preserve: Iterable[str] = ()) -> ScriptModule:
        """A copy in which attributes that no method writes are constants, as by `torch.jit.freeze`; of the methods, `forward` remains.

        preserve: names of further methods and attributes that remain. Raises RunError for a module in training mode and for an unknown
        name, UnsupportedError for methods whose instances are known only when they run and for what has no source.
        """
        from irtool.archives.archive import Archive
        from irtool.archives.container import Container
        from irtool.archives.flat_methods import frozen

        return ScriptModule.of_archive(Archive(Container.of(frozen(self, preserve).archive())))

    def graph(self, method: str = "forward", inlined: bool = True) -> Graph:
        """The graph of a method, with calls inlined or not; its first input is the instance. A copy, which may be changed."""
        graph = self.method(method).code_graph
        return opened(self._program.library, graph, None).graph if inlined else clone_graph(graph)

    def vjp(self, method: str, inputs: Sequence[Any], cotangents: Sequence[Any], wrt: Sequence[int | str]) -> list[Any]:
        """Gradients of arguments (by position) and of parameters (by dotted name), in the order of `wrt`; None if no gradient can reach
        one.

        cotangents: one per tensor of the result, also of those in tuples, lists and dicts; None: the tensor takes no part.
        """
        return self.method(method).vjp(inputs, cotangents, wrt, {name: place for name, place in self._places()})

    # -- attributes
    def __getattr__(self, name: str) -> Any:
        attributes = self._instance.attributes
        if name in attributes:
            return self._program.outward(attributes[name])
        if name in self._definition.methods:
            return self.method(name)
        if name in self._definition.constants and self._definition.place.unit is not None:
            return declared_default(self._definition.constants[name], self._definition.place.unit)
        raise NameMissing(f"{self._definition.type} has no attribute or method '{name}'", name,
                          lambda: [*attributes, *self._definition.methods])

    def __setattr__(self, name: str, value: Any) -> None:
        declared = self._definition.declared
        if name not in declared:
            raise Error(f"{self._definition.type} has no attribute '{name}'")
        type = self._definition.attributes[name]
        value = inward(unwrapped(value))
        if not isinstance(type, TensorType) or is_array(value):     # a number is no tensor here
            try:
                value = accepted(value, type, name)
            except RunError:
                value = NotImplemented      # a value that fits no type
        if not fits(value, type, self._program.library, set()):
            raise RunError(f"the attribute '{name}' of {self._definition.type} takes {type}", code="E0403")
        self._instance.attributes[name] = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ScriptModule) and other._instance is self._instance

    def __hash__(self) -> int:
        return id(self._instance)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self._instance.attributes, *self._definition.methods, *self._definition.constants})

    def __repr__(self) -> str:
        return f"<ScriptModule {self._definition.type}: {', '.join(self._definition.methods)}>"

    # -- parameters
    def _modules(self) -> Iterator[tuple[str, Object, ClassDefinition]]:
        """Instances of modules by dotted name, each once, outer ones first."""
        seen: set[int] = set()
        todo = [("", self._instance)]
        while todo:
            name, each = todo.pop()
            if id(each) in seen:
                continue
            seen.add(id(each))
            definition = self._program.library.definition(each.type)
            yield name, each, definition
            inner = [(f"{name}{key}.", value) for key, value in each.attributes.items()
                     if isinstance(value, Object) and self._program.library.definition(value.type).is_module]
            todo += reversed(inner)

    def named_attributes(self) -> Iterator[tuple[str, Any]]:
        """Attributes by dotted name, also of submodules, which are not attributes themselves."""
        for prefix, instance, _ in self._modules():
            for name, value in instance.attributes.items():
                if not isinstance(value, Object):
                    yield prefix + name, value

    def _places(self) -> Iterator[tuple[str, tuple[Object, str]]]:
        """Parameters and buffers by dotted name: the instance that has it as an attribute."""
        for prefix, instance, definition in self._modules():
            for name in [*definition.lists.get("__parameters__", ()), *definition.lists.get("__buffers__", ())]:
                if is_array(instance.attributes.get(name)):
                    yield prefix + name, (instance, name)

    def _listed(self, which: str) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        for prefix, instance, definition in self._modules():
            for name in listed(definition, which):
                value = instance.attributes.get(name)
                if is_array(value) and id(value) not in seen:
                    seen.add(id(value))
                    yield prefix + name, value

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        """Parameters by dotted name, each once, in torch's order: the arrays themselves."""
        return self._listed("__parameters__")

    def named_buffers(self) -> Iterator[tuple[str, Any]]:
        """Buffers by dotted name, each once, in torch's order: the arrays themselves."""
        return self._listed("__buffers__")

    def state_dict(self) -> dict[str, Any]:
        """Parameters and buffers by dotted name: the arrays themselves."""
        state: dict[str, Any] = {}
        for prefix, instance, definition in self._modules():
            for which in ("__parameters__", "__buffers__"):
                for name in listed(definition, which):
                    if is_array(instance.attributes.get(name)):
                        state[prefix + name] = instance.attributes[name]
        return state

    def train(self, on: bool = True) -> ScriptModule:
        """Set `training` of this module and its submodules. Raises RunError for a mode that is not True or False."""
        check_flag("train", "on", on)
        for _, instance, definition in self._modules():
            if "training" in definition.declared:
                instance.attributes["training"] = on
        return self

    def eval(self) -> ScriptModule:
        """As `train(False)`."""
        return self.train(False)

    def load_state_dict(self, state: Mapping[str, Any] | str | os.PathLike[str], strict: bool = True) -> Keys:
        """Write arrays into parameters and buffers by dotted name. Returns the names that only one side has, which `strict` forbids.

        state: a dict; or the path of a file of weights (.npz, .safetensors, a file of torch.save) or of another archive.

        Raises RunError, before anything is written, if an array does not fit.
        """
        return load_state_dict(self.state_dict(), state, strict, str(self._definition.type))

    def to(self, dtype: Any) -> ScriptModule:
        """Convert parameters and buffers of floating-point and complex numbers to a dtype, NumPy's or torch's. Raises RunError."""
        convert([each for _, each, _ in self._modules()], self.state_dict().values(), self._program.trainable, dtype)
        return self

    def requires_grad_(self, on: bool = True) -> ScriptModule:
        """Set for all parameters whether they require gradients. Raises RunError for what is not True or False."""
        check_flag("requires_grad_", "on", on)
        for _, array in self.named_parameters():
            self._program.trainable[id(array)] = array, on
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> ScriptModule:
        """A module with a separate state."""
        instance, trainable = copy_of(self._instance, self._program.trainable)
        return ScriptModule(instance, Program(self._program.archive, ScriptModule, trainable, self._program.lock))

    def __reduce__(self) -> Any:
        """Pickled as the archive that `irtool.save` writes."""
        from io import BytesIO

        from irtool.archives import load
        from irtool.archives.saving import save

        file = BytesIO()
        save(self, file)
        return load, (file.getvalue(),)


def listed(definition: ClassDefinition, which: str) -> Iterator[str]:
    """Names of parameters or buffers; without buffers of type Optional[Tensor], which torch does not count among them, even set ones."""
    names = definition.lists.get(which, ())
    return (name for name in names if which == "__parameters__" or not isinstance(definition.attributes.get(name), OptionalType))


def functional_call(module: ScriptModule, parameters: Mapping[str, Any] | Sequence[Mapping[str, Any]], args: Any = (),
                    kwargs: Mapping[str, Any] | None = None, method: str = "forward") -> Any:
    """A method's result with arrays in place of the parameters and buffers of those names: a function of them for grad, vmap, jvp and jit.

    parameters: arrays or tensors by dotted name, in a dict, or in a tuple or list of dicts; for missing ones the module's own are used, and
    one that the module has under two names is replaced under both. args: a tuple, the only argument, or None for none. Results are arrays;
    tensors if arguments are tensors, and under irtool's layers. If the method writes into a replaced buffer, it writes into the given
    array; if it assigns the attribute, into the dict, unless there are several. Hooks run with `forward`. Raises RunError for unknown
    names, UnsupportedError if a layer hides a value to be written.
    """
    if not isinstance(module, ScriptModule):
        raise RunError(f"functional_call: expected a module as `load` returns it, got {type(module).__name__}")
    parameters = in_one(parameters)
    replaced = Replaced(parameters, dict(module._places()))
    run = module.method(CALL if method == "forward" else method)
    return run.call(() if args is None else args if isinstance(args, tuple) else (args,), kwargs or {}, replaced)


def in_one(parameters: Any) -> Mapping[str, Any]:
    """The dict of several. Raises RunError, in torch's words, for a name in two of them, and for a value that is neither."""
    if isinstance(parameters, Mapping):
        return parameters
    if not isinstance(parameters, list | tuple):
        raise misfit("functional_call", "parameters", parameters, "a dict of arrays by dotted name, or a list/tuple of dicts")
    if not all(isinstance(each, Mapping) for each in parameters):
        raise RunError("functional_call: Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    names = [name for each in parameters for name in each]
    repeated = sorted({str(name) for name in names if names.count(name) > 1})
    if repeated:
        raise RunError(f"functional_call: {repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {name: value for each in parameters for name, value in each.items()}
