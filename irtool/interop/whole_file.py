"""Files that are written completely or not at all: under another name, then renamed."""
from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO


@contextmanager
def whole_file(target: str) -> Iterator[BinaryIO]:
    """A file to write into, which replaces `target` at the end of the block; after an error in the block, `target` is unchanged.

    Raises OSError.
    """
    handle, temporary = sibling(target)
    try:
        with os.fdopen(handle, "w+b") as file:
            yield file
            if os.path.exists(target):
                os.chmod(temporary, os.stat(target).st_mode & 0o7777)
        try:
            os.replace(temporary, target)
        except OSError as error:                # names the file that the caller knows
            raise type(error)(error.errno, error.strerror, target) from None
    except BaseException:                       # also KeyboardInterrupt
        os.unlink(temporary)
        raise


def sibling(target: str) -> tuple[int, str]:
    """A new file, open, in the folder of another; existing files are never touched. Raises OSError."""
    folder, name = os.path.split(target)
    for attempt in range(10_000):
        path = os.path.join(folder, f"{name[:40]}.{os.getpid()}{f'.{attempt}' if attempt else ''}.tmp")
        try:
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666), path
        except FileExistsError:
            continue
        except OSError as error:
            raise type(error)(error.errno, error.strerror, target) from None
    raise FileExistsError(17, "File exists", path)
