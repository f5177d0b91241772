"""Constants in a file beside the text: reads the file that a text names, and writes one if the text cannot contain the numbers."""
from __future__ import annotations

import os

from irtool.cli.exit_errors import UsageError
from irtool.cli.opener import ArchiveSource
from irtool.ir.errors import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.cli.console import Console
    from irtool.interop.beside import Beside
    from irtool.ir.module import Module
    from irtool.ir.source import SourceFile

LINE = "# constants:"
PACKED = "<Packed>"
"""The text of packed parameters of quantized layers."""


class Taken:
    """The file that a text names: the text that names it, and its keys and arrays (None: it could not be read)."""

    def __init__(self, text: str, content: dict[str, tuple[str, tuple[int, ...], bytes]] | None) -> None:
        self.text = text
        self.content = content


def take(module: Module, source: SourceFile, path: str, console: Console, is_needed: bool) -> Taken | None:
    """Attach the arrays of the file that a text names, if it names one, to the constants.

    path: the file of the text. Raises UsageError if the named file cannot be read, Error if it is not the file that was written with the
    text; if it is not needed, prints a note instead.
    """
    if isinstance(source, ArchiveSource):
        return Taken(source.text, {})
    if LINE not in source.text:
        return None
    from irtool.interop.beside import named_in

    beside = named_in(module, source)
    if beside is None:
        return None
    text = str(module)
    try:
        attach_named(module, beside, path, console)
    except Error as error:
        if is_needed:
            raise
        console.report(beside.problem(f"{error.message}: the numbers of constants are not known", "note"))
        return Taken(text, None)
    return Taken(text, content_of(module))


def attach_named(module: Module, beside: Beside, path: str, console: Console) -> None:
    """The same for the file that a `# constants:` line names. Raises UsageError or Error."""
    from irtool.interop.beside import attach_content

    place = os.path.join(os.path.dirname(path) if path != "-" else "", beside.name)
    if os.path.exists(place) and not os.path.isfile(place):
        raise UsageError(diagnostics=[beside.problem(f"constants are in {place}, which is no file")], code="E0706")
    try:
        data = console.read_bytes(place)
    except UsageError as error:
        raise UsageError(diagnostics=[beside.problem(f"constants are in {error.message}")], code="E0706") from None
    attach_content(module, beside, data, place)


def content_of(module: Module) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """The constants that have arrays, in a form that can be compared."""
    from irtool.interop.constant_archives import collect
    from irtool.ops.array_library import has_elements

    archive = collect(module)
    return {key: (each.dtype.name, each.shape, each.tobytes() if has_elements(each) else b"%d" % id(each))
            for key, each in archive.arrays.items()}


def keep(module: Module, taken: Taken | None, path: str, output: str, console: Console, is_written: bool = True) -> None:
    """Store the arrays of constants for a text that is about to be written to `output`.

    Small arrays become literals of the text; others are written to a file beside it, `STEM.constants.npz`, which the text names. If the
    text goes to the result stream, there is no such file, and a warning says so. path: the file of the input. is_written: False
    for a text that is only compared with that of `output`: it is the same, and no file is written. Raises UsageError.
    """
    from irtool.text.tensor_line import has_arrays

    if taken is None and not any(map(has_arrays, module.graphs)):
        return
    if any(node.kind == "prim::Constant" and "value" in node.attributes and node.attributes["value"].text == PACKED
           for graph in module.graphs for node in graph.walk()):
        from irtool.archives.packed_text import unpack_constants

        unpack_constants(module)
    if taken is not None:
        if taken.content is None:
            forget_stale(module, taken, path, output, console)
            return
        if is_same_folder(path, output) and content_of(module) == taken.content:
            return
    from irtool.interop.beside import set_line
    from irtool.interop.spelling import spell

    rest = spell(module)
    set_line(module, None)
    if not rest:
        return
    if output == "-" or os.path.exists(output) and not os.path.isfile(output):
        more = f" and {len(rest) - 1} more" if len(rest) > 1 else ""
        console.warn(f"the text says <Tensor> for constant %{rest[0]}{more}: -o FILE keeps the numbers in a file beside it", "W0103")
        return
    store(module, rest, output, is_written)


def store(module: Module, keys: list[str], output: str, is_written: bool) -> None:
    """Write the arrays at these keys into a file beside `output`, if it `is_written`, and name it in the text. Raises UsageError."""
    from irtool.cli.console import write_whole
    from irtool.interop.beside import set_line
    from irtool.interop.constant_archives import collect
    from irtool.interop.npz import Archive, encode

    target = os.path.realpath(output)
    name = f"{os.path.basename(target).rpartition('.')[0] or os.path.basename(target)}.constants.npz"
    place = os.path.join(os.path.dirname(target), name)
    every = collect(module)
    data = encode(Archive({key: every.arrays[key] for key in keys}, bfloat16=every.bfloat16 & set(keys)))
    if os.path.lexists(place) and not names_it(target, name):
        raise UsageError(f"cannot write {place}: it is there, and no text of this name says that it is its constants", code="E0708")
    if is_written:
        write_whole(place, data)
    set_line(module, name, data)


def names_it(path: str, name: str) -> bool:
    """Does a text at `path` name this file?"""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return f"{LINE} {name} sha256=" in file.read()
    except OSError:
        return False


def forget_stale(module: Module, taken: Taken, path: str, output: str, console: Console) -> None:
    """Drop the name of the file from a text that was changed without its arrays, since these are assigned by names of values."""
    from irtool.interop.beside import set_line

    if str(module) != taken.text or not is_same_folder(path, output):
        set_line(module, None)
        console.warn("the result does not name the file of constants any more, which could not be read: the names may be others", "W0103")


def is_same_folder(path: str, output: str) -> bool:
    """Are `path` and `output` in the same folder, so that a file name beside one is valid for the other?"""
    folders = [os.path.realpath(os.path.dirname(each) if each != "-" else "") for each in (path, output)]
    return output == "-" or folders[0] == folders[1]


# -- an npz that the command line names
def take_constants(module: Module, path: str, console: Console) -> None:
    """Attach the arrays of an npz, if it exists; note which constants have none."""
    from irtool.interop.constant_archives import missing

    if os.path.exists(path):
        attach_constants(module, path, console)
    lost = missing(module)
    if lost:
        more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
        console.warn(f"{module.filename}: no file has the numbers of constant %{lost[0]}{more}", "W0103")


def attach_constants(module: Module, path: str, console: Console) -> None:
    """Attach the arrays of an npz. Raises Error for a key that is no constant, UsageError if the file cannot be read."""
    from irtool.interop.beside import attach_all

    attach_all(module, console.read_archive(path), path)


def keep_constants(module: Module, path: str) -> None:
    """Write the arrays to an npz under the present names of the values."""
    from irtool.cli.console import write_whole
    from irtool.interop.array_files import encode
    from irtool.interop.constant_archives import collect

    archive = collect(module)
    if len(archive):
        write_whole(path, encode(archive, path))
