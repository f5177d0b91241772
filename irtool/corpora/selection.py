"""The list of cases for the words of a command line: files, folders and patterns; folders of graphs with inputs and expected outputs."""
from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from glob import glob, has_magic

from irtool.ir.errors import Error

TEXTS = (".ir",)
GRAPHS = (*TEXTS, ".pt")
"""Extensions of graphs in folders."""


class Case:
    """One graph to be processed.

    `words` is the command line for it alone; a resumed run compares it and the `files` that are read. `output` is the file that it writes,
    if any.
    """

    __slots__ = ("name", "words", "files", "output")

    def __init__(self, name: str, words: tuple[str, ...], files: tuple[str, ...], output: str | None = None) -> None:
        self.name = name
        self.words = words
        self.files = files
        self.output = output

    def __repr__(self) -> str:
        return f"Case({self.name!r}, {self.words!r}, {self.files!r}, {self.output!r})"


def is_many(words: Iterable[str]) -> bool:
    """Do the words name several files, a folder or a pattern?"""
    words = list(words)
    return len(words) > 1 or any(os.path.isdir(word) or is_pattern(word) for word in words)


def is_pattern(word: str) -> bool:
    """Is the word a pattern (`nets/**/*.ir`), and not the name of a file?"""
    return has_magic(word) and not os.path.exists(word)


def graph_files(words: Iterable[str], results: str | None = None, endings: tuple[str, ...] = GRAPHS) -> list[tuple[str, str]]:
    """Path and name of each file: files themselves, the graphs in folders, and matches of patterns, in the order of their names.

    A name is unique: the path below the folder, or below the part of a pattern without wildcards. results: a folder that is not searched;
    endings: the files that are looked for in folders. Raises Error if a word matches nothing, or if two files have the same name.
    """
    places: dict[str, str] = {}
    for word in words:
        if os.path.isdir(word):
            paths, base = sorted(searched(word, results, endings)), word
        elif is_pattern(word):
            paths, base = sorted(path for path in glob(word, recursive=True) if os.path.isfile(path)), fixed_part(word)
        elif os.path.exists(word) or os.path.isfile(word.rpartition(":")[0]):     # a method of an archive
            paths, base = [word], os.path.dirname(word)
        else:
            raise Error(f"{word}: no such file or folder", code="E0707")
        if not paths:
            none = " and ".join(f"no *{each}" for each in endings)
            why = f"{none} in this folder" if os.path.isdir(word) else "no such file, and no file matches"
            raise Error(f"{word}: {why}", code="E0707")
        for path in paths:
            name = os.path.relpath(path, base or ".").replace(os.sep, "/")
            other = places.setdefault(name, path)
            if os.path.realpath(other) != os.path.realpath(path):
                raise Error(f"{other} and {path} would both be called {name}: take the folder above them", code="E0707")
    return [(path, name) for name, path in places.items()]


def searched(folder: str, results: str | None, endings: tuple[str, ...]) -> Iterator[str]:
    """The graphs in a folder and its subfolders, except those whose names begin with a dot."""
    for place, folders, files in os.walk(folder):
        folders[:] = [each for each in folders if not each.startswith(".")
                      and not (results is not None and os.path.realpath(os.path.join(place, each)) == os.path.realpath(results))]
        yield from (os.path.join(place, each) for each in files if each.endswith(endings) and not each.startswith("."))


def fixed_part(pattern: str) -> str:
    """The folder above the first wildcard of a pattern."""
    while has_magic(pattern):
        pattern = os.path.dirname(pattern)
    return pattern


def arrays_beside(graph: str, is_alone: bool) -> tuple[str | None, str | None]:
    """The files of inputs and of expected outputs for a graph: NAME.npz and NAME.expected.npz.

    is_alone: the folder has no other graph, so that they may be called inputs.npz and expected.npz.
    """
    stem, folder = os.path.splitext(graph)[0], os.path.dirname(graph)

    def first(*paths: str) -> str | None:
        return next(filter(os.path.isfile, paths if is_alone else paths[:1]), None)
    return first(f"{stem}.npz", os.path.join(folder, "inputs.npz")), first(f"{stem}.expected.npz", os.path.join(folder, "expected.npz"))
