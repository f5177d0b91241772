"""The conversion of files by `irtool convert`."""
from __future__ import annotations

from irtool.archives import weights_writer
from irtool.archives.container import in_memory
from irtool.archives.file_kinds import content_of, state_of
from irtool.archives.saving import save
from irtool.archives.script_module import ScriptModule
from irtool.cli.console import are_weights, write_whole
from irtool.cli.constants_file import Taken, keep, take
from irtool.cli.exit_errors import UsageError
from irtool.cli.inputs import say_what_is_rounded, with_state
from irtool.cli.opener import archive_at, is_archive_name, method_of
from irtool.cli.source_places import parse_source
from irtool.interop.array_files import encode
from irtool.interop.constant_archives import missing, places
from irtool.interop.npz import Archive
from irtool.ir.errors import Error
from irtool.ir.tensor_literal import TensorLiteral
from irtool.ir.types import TensorType
from irtool.ops.arrays import dtype_named
from irtool.ops.structure import tensor_of
from irtool.torchscript.printing.to_python import to_script

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from irtool.cli.command import Arguments
    from irtool.cli.console import Console
    from irtool.ir.module import Module

WEIGHTS = ".npz", ".safetensors"


def convert(arguments: Arguments, console: Console) -> None:
    """Read a file, and write it in the form of the output's extension. Raises UsageError, Error."""
    target = arguments.output
    if not target.endswith((*WEIGHTS, ".ir", ".py")) and not is_archive_name(target):
        raise UsageError(f"{target}: the extension says what to write: .pt, .ir, .npz, .safetensors or .py", code="E0801")
    text = None
    place = ("-", "") if arguments.source == "-" else archive_at(arguments.source)
    if arguments.source == "-":
        data = console.read_bytes("-", lambda first: b"\0" in first and not may_be_weights(first))
        content = content_in(bytearray(data), console.stdin_name)
        text = console.text_of(data, "-") if content is None else None
    else:
        content = None if place is None else content_in(*mapped(place[0]))
    if content is not None and arguments.load_state:
        if isinstance(content, Archive):
            raise UsageError("--load-state is for archives and text, not for weights alone", code="E0801")
        content.load_state_dict(console.read_archive(arguments.load_state).arrays)
    if arguments.input and (content is not None or not arguments.load_state):
        raise UsageError("--input is for attributes of the module that a text takes, beside --load-state", code="E0801")
    if isinstance(content, Archive):
        if not target.endswith((*WEIGHTS, ".pt")):
            raise Error(f"{arguments.source}: arrays alone, which contain no program: .npz, .safetensors and .pt take them", code="E0711")
        write_whole(target, weights_writer.encode(content) if target.endswith(".pt") else encode(content, target))
    elif place is None or content is None:
        source = text or console.read(arguments.source)
        module = parse_source(source)
        taken = take(module, source, arguments.source, console, is_needed=True)
        if arguments.load_state:
            module, taken = with_state(module, source, arguments, console), None
            if arguments.input:
                raise UsageError(f"--input {arguments.input[0]}: that is no attribute of the module", code="E0801")
        write_text(module, taken, arguments, console)
    elif place[1] or target.endswith(".ir"):
        method = method_of(content, *place)
        write_text(method.module, Taken(method.text, {}), arguments, console)
    elif target.endswith(WEIGHTS):
        write_whole(target, encode(state_of(content), target))
    elif target.endswith(".py"):
        console.save(target, content.code(), "python")
    else:
        write_archive(content, target)


def may_be_weights(first: bytes) -> bool:
    """May a file with this beginning be an archive, or contain arrays?"""
    return first[:2] == b"PK" or are_weights(first)


def mapped(file: str) -> tuple[Any, str]:
    """A file in memory, and its name. Raises UsageError if it cannot be read."""
    try:
        return in_memory(file)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror or error}", code="E0707") from None


def content_in(memory: Any, name: str) -> ScriptModule | Archive | None:
    """The module of an archive, or the arrays of a file of weights; None for text. Raises Error."""
    content = content_of(memory, name)
    return content if isinstance(content, Archive | None) else ScriptModule.of_archive(content)


def write_text(module: Module, taken: Taken | None, arguments: Arguments, console: Console) -> None:
    """Write graphs as text, in the form of the output's extension. Raises Error."""
    target = arguments.output
    if not target.endswith(".ir"):
        say_what_is_rounded(module, console)
    if target.endswith(WEIGHTS):
        write_whole(target, encode(constants_of(module), target))
    elif target.endswith(".py"):
        console.save(target, to_script(module), "python")
    elif target.endswith(".ir"):
        keep(module, taken, arguments.source, target, console)
        console.save(target, str(module), "ir")
    else:
        write_archive(module, target)


def constants_of(module: Module) -> Archive:
    """The tensor constants of a text, literals included. Raises Error for a constant without numbers."""
    lost = missing(module)
    if lost:
        raise Error(f"{module.filename}: no file has the numbers of constant %{lost[0]}", code="E0705")
    archive = Archive()
    for key, node, name in places(module):
        literal = node.attributes[name].value
        if isinstance(literal, TensorLiteral):
            type = node.outputs[0].type if name == "value" else None
            value = tensor_of(literal, type)
            if isinstance(value, int | float | complex) and isinstance(type, TensorType) and type.dtype:
                value = dtype_named(type.dtype).type(value)
            archive.put(key, value, is_bfloat16=literal.dtype == "bfloat16")
    return archive


def write_archive(content: ScriptModule | Module, target: str) -> None:
    """Write an archive. Raises UsageError if it cannot be written; Error."""
    try:
        save(content, target)
    except OSError as error:
        raise UsageError(f"cannot write {target}: {error.strerror or error}", code="E0708") from None
