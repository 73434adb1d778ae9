"""Finds or loads `liblargesse.so`, globally and at most once in a process.

A process that was started by `largesse run`, or in which another package loaded the library, has it already. In any
other process a file is loaded, and stays loaded until the process ends.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from pathlib import Path
from typing import Any

from ._error import Error

try:
    import ctypes

    from . import _abi
except ImportError as error:  # an interpreter without ctypes, or a subinterpreter that refuses it
    _no_ctypes: str | None = f"the module ctypes cannot be imported here ({error})"
else:
    _no_ctypes = None

NAME = "liblargesse.so"
PACKAGE = Path(__file__).resolve().parent

_functions: Functions | None = None


class Functions:
    """The functions of the loaded library as attributes, without their prefix."""

    def __init__(self, loaded: Any) -> None:
        self._loaded = loaded

    def __getattr__(self, name: str) -> Any:
        if name not in _abi.FUNCTIONS:
            raise AttributeError(name)
        result, arguments = _abi.FUNCTIONS[name]
        try:
            function = self._loaded["largesse_" + name]
        except AttributeError:
            version = self._loaded["largesse_version"]()
            raise Error(
                f"the {NAME} of this process has the interface {version >> 16}.{version & 0xFFFF}, which is too old "
                f"for this call: install the module and the library from one release"
            ) from None
        function.restype, function.argtypes = result, arguments
        setattr(self, name, function)
        return function


def unsupported() -> str | None:
    """Returns the reason why no library can be loaded on this system, or None."""
    if sys.platform != "linux":
        return f"Largesse works on Linux only, and this is {sys.platform}"
    if sys.maxsize < 2**32:
        return "Largesse needs a 64-bit Python"
    if sys.implementation.name != "cpython":
        return f"Largesse needs CPython, and this is {sys.implementation.name}: start it with largesse run instead"
    return _no_ctypes


def own_copy() -> Path:
    """Returns the path of the library to load: the one that LARGESSE_LIBRARY names, else the first that exists."""
    named = os.environ.get("LARGESSE_LIBRARY", "")
    if named:
        if not Path(named).exists():
            raise Error(f"there is no file {named}: set LARGESSE_LIBRARY to the path of {NAME}")
        return Path(named).absolute()
    folders = [PACKAGE / "lib"]
    command = shutil.which("largesse")
    if command:
        folders.append(Path(command).resolve().parent.parent / "lib" / "largesse")
    folders += [Path("/usr/local/lib/largesse"), Path("/usr/lib/largesse")]
    for folder in folders:
        if (folder / NAME).exists():
            return folder / NAME
    raise Error(
        f"{NAME} was not found in {', '.join(map(str, folders))}: install the wheel, set LARGESSE_LIBRARY to its "
        f"path, or start Python by `largesse run -- python`"
    )


def _machine_of(path: Path) -> bytes:
    """Returns class, byte order and machine of an ELF file; no bytes for another file."""
    with open(path, "rb") as file:
        head = file.read(64)
    if len(head) < 64 or not head.startswith(b"\x7fELF"):
        return b""
    # The table of sections ends the file. The dynamic linker would crash on a file that was not copied to its end.
    table = int.from_bytes(head[40:48], sys.byteorder)
    size, count = (int.from_bytes(head[at : at + 2], sys.byteorder) for at in (58, 60))
    if path.stat().st_size < table + size * count:
        raise Error(f"{path} is incomplete: install it again")
    return head[4:6] + head[18:20]


def _load(path: Path) -> Any:
    try:
        fits = _machine_of(path) == _machine_of(Path("/proc/self/exe"))
    except OSError as error:
        raise Error(f"{path} cannot be read: {error.strerror}") from None
    if not fits:
        raise Error(
            f"{path} is not a library for this machine ({platform.machine()}): install the wheel whose name ends in "
            f"{platform.machine()}.whl"
        )
    try:
        # Global, so that another front in this process (R by rpy2) finds this copy and loads no second one.
        return ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        if "GLIBC_" in str(error):
            raise Error(
                f"the C library of this system is too old ({' '.join(platform.libc_ver())}): {error}. Install the "
                f"wheel for an older system, or build Largesse here by `make`"
            ) from None
        raise Error(f"{path} cannot be loaded: {error}") from None


def library() -> Functions:
    """Returns the library of this process, which is loaded if necessary.

    Each failing call tries again, so that a path may be set after the import.
    """
    global _functions
    if _functions is None:
        why = unsupported()
        if why:
            raise Error(why)
        loaded: Any = ctypes.CDLL(None)
        if not hasattr(loaded, "largesse_version"):
            path = own_copy()
            loaded = _load(path)
            if not hasattr(loaded, "largesse_version"):
                raise Error(f"{path} is not Largesse's library")
        major = loaded.largesse_version() >> 16
        if major != _abi.MAJOR:
            raise Error(
                f"the {NAME} of this process has interface {major}, and this module needs {_abi.MAJOR}: install both "
                f"from one release"
            )
        _functions = Functions(loaded)
    return _functions


def no_library() -> str | None:
    """Returns the reason why there is no library in this process, or None."""
    try:
        library()
    except Error as error:
        return str(error)
    return None


def why_not() -> str | None:
    """Returns the reason why the blocks of this process cannot be served, as the library knows it, or None."""
    why = library().why_not()
    return why.decode() if why else None


def path_of_library() -> str | None:
    """Returns the path of the library in this process; None if it is not loaded."""
    if _functions is None:
        return None
    with open("/proc/self/maps") as maps:
        for line in maps:
            if NAME in line:
                return line.split(maxsplit=5)[5].rstrip("\n")
    return None


def stats() -> Any:
    """Returns the counters of the library."""
    now = _abi.Stats(struct_size=ctypes.sizeof(_abi.Stats))
    if library().stats(now) != _abi.OK:
        raise Error(f"{NAME} refused the request for its statistics: install it and this module from one release")
    return now
