"""The disk cache: compiled kernels and plans in a folder that belongs to the user, shared by processes.

An entry is bytes under a key: the SHA-256 of the text, options and versions that the bytes were made from. It is written to a temporary
file and renamed, so that readers never see a half-written entry. It ends with a checksum: a damaged entry counts as absent. The folder is
`$IRTOOL_CACHE_DIR`, else `$XDG_CACHE_HOME/irtool`, else `~/.cache/irtool`. The cache is off if IRTOOL_CACHE_DIR is empty, or if others
may write to the folder. A folder without write permission is only read. Entries are never unpickled, and files that are no entries are
never touched.
"""
from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path

DIGEST = 32
MAX_BYTES = 256 * 2**20
"""If the folder is larger, the least recently used entries are removed."""
UNFINISHED = ".making-"
ABANDONED = 3600
"""Seconds after which an unfinished entry counts as abandoned."""
_is_entry = re.compile(r"[0-9a-f]{64}\.\w+").fullmatch


def key_of(*parts: str) -> str:
    """The key of an entry that is made from these texts."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(str(len(data)).encode() + b":" + data)
    return digest.hexdigest()


def folder() -> Path | None:
    """The folder, created if necessary; None if the cache is off, or the folder cannot be created or is not safe."""
    named = os.environ.get("IRTOOL_CACHE_DIR")
    if named == "":
        return None
    try:
        base = os.environ.get("XDG_CACHE_HOME")
        path = Path(named) if named else (Path(base) if base else Path.home() / ".cache") / "irtool"
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.stat()
    except (OSError, RuntimeError):
        return None
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
        return None
    return path


def load(key: str, suffix: str) -> Path | None:
    """The path of an intact entry; None if there is none. A damaged entry is removed."""
    entry = _sound(key, suffix)
    return None if entry is None else entry[0]


def read(key: str, suffix: str) -> bytes | None:
    """The bytes of an intact entry; None if there is none. The file is read once, so the bytes are those that were checked."""
    entry = _sound(key, suffix)
    return None if entry is None else entry[1]


def _sound(key: str, suffix: str) -> tuple[Path, bytes] | None:
    """The path of an entry whose checksum is right, and its bytes without the checksum. A damaged entry is removed; an intact one is
    marked as used now."""
    base = folder()
    if base is None:
        return None
    path = base / f"{key}.{suffix}"
    try:
        data = _bytes_of(path)
        if data is None:        # a pipe, device or folder, or another user's file: do not remove it
            return None
        if len(data) < DIGEST or hashlib.sha256(data[:-DIGEST]).digest() != data[-DIGEST:]:
            path.unlink(missing_ok=True)
            return None
    except OSError:
        return None
    with suppress(OSError):     # a folder that can only be read
        os.utime(path)
    return path, data[:-DIGEST]


def _bytes_of(path: Path) -> bytes | None:
    """The bytes of a regular file that the user owns; None for any other file. Never blocks (on a pipe, say). Raises OSError."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES or hasattr(os, "getuid") and status.st_uid != os.getuid():
            return None
        return file.read(status.st_size)


def store(key: str, suffix: str, data: bytes) -> Path | None:
    """Write an entry; returns its path, or None if it could not be written."""
    base = folder()
    if base is None:
        return None
    path = base / f"{key}.{suffix}"
    try:
        handle, beside = tempfile.mkstemp(prefix=UNFINISHED, dir=base)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data + hashlib.sha256(data).digest())
            os.replace(beside, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(beside)
            raise
        _trim(base)
    except OSError:
        return None
    return path


def _trim(base: Path) -> None:
    """Remove the least recently used entries until the folder has three quarters of MAX_BYTES. Files that are no entries stay."""
    entries = []
    for path in base.iterdir():
        with suppress(OSError):
            status = path.lstat()
            if not stat.S_ISREG(status.st_mode):
                continue
            if _is_entry(path.name):
                entries.append((status.st_mtime, status.st_size, path))
            elif path.name.startswith(UNFINISHED) and status.st_mtime < time.time() - ABANDONED:
                path.unlink()
    total = sum(size for _, size, _ in entries)
    if total <= MAX_BYTES:
        return
    for _, size, path in sorted(entries, key=lambda entry: entry[0]):
        with suppress(OSError):
            path.unlink()
            total -= size
        if total <= MAX_BYTES * 3 // 4:
            return
