"""Far memory: arrays that do not fit into memory are kept in a store."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Any, Generic, Iterable, Iterator, Optional, TypeVar, Union

from . import _abi, _pages
from ._error import Error
from ._library import PACKAGE, library, no_library

_Item = TypeVar("_Item")


def far_memory(local: Union[str, int], store: Optional[str] = None, page_size: str = "auto") -> None:
    """Keeps at most `local` of the large arrays in memory, and the rest in a store.

    `local` is a size such as "4G", a number of bytes, or a share such as "50%". `store` is "file:PATH"; by default a
    file without a name in $TMPDIR or /var/tmp. Stores on servers and other machines, as "redis://host", need the
    command `largesse`. `page_size` is the size of transfers, "4K" to "2M", or "auto". Call it once, before the first
    large array.

    >>> import largesse
    >>> largesse.far_memory("4")
    Traceback (most recent call last):
    ...
    largesse.Error: no far memory: local "4" is 4 bytes without a unit, and the least is 1M; did you mean 4G or 4M?
    """
    size = str(local) if isinstance(local, int) and not isinstance(local, bool) else local
    _check_texts(local=size, page_size=page_size, store=store)
    _pages._ready()
    named = None if store is None else _store_named(store).encode()
    why = library().far_memory(str(size).encode(), named, page_size.encode())
    if why is not None:
        raise Error(f"no far memory: {why.decode()}")
    _pages._switch.change(enabled=True)


def memory_limit(limit: Union[str, int], store: Optional[str] = None) -> None:
    """Keeps the process below `limit` from now on, also if large arrays exist.

    `limit` is a size such as "8G", a number of bytes, or "auto" for the tightest limit of its container, job or
    machine. Near the limit, pages of large arrays are moved to `store`, "file:PATH"; by default a file without a name
    in $TMPDIR or /var/tmp. Call it again to change the limit. It needs Linux 6.8. For users without the right to handle
    page faults of system calls, other threads must be idle, and programs that are started afterwards cannot gain rights.

    >>> import largesse
    >>> largesse.memory_limit("8")
    Traceback (most recent call last):
    ...
    largesse.Error: no limit: limit "8" is 8 bytes without a unit, and the least is 64M; did you mean 8G?
    """
    size = str(limit) if isinstance(limit, int) and not isinstance(limit, bool) else limit
    _check_texts(limit=size, store=store)
    _pages._ready()
    named = None if store is None else _store_named(store).encode()
    why = library().limit(str(size).encode(), named)
    if why is not None:
        raise Error(f"no limit: {why.decode()}")
    _pages._switch.change(enabled=True)


def _check_texts(**texts: object) -> None:
    """Raises an error for the first value that is no text, or an empty one. A store may be None."""
    for name, value in texts.items():
        if (
            not isinstance(value, str)
            and not (name == "store" and value is None)
            or value == ""
            or "\0" in (value or "")
        ):
            raise Error(f"{name} must be a text such as {_EXAMPLES[name]}, not {value!r}")


_EXAMPLES = {
    "limit": '"8G" or "auto"',
    "local": '"4G" or "50%"',
    "page_size": '"auto" or "64K"',
    "store": '"file:/scratch/ann/pages"',
}


def _store_named(store: str) -> str:
    """Returns the store's name for the library. For stores outside this machine it starts an agent, which lives as long
    as this process."""
    if store.startswith("file:") and store != "file:":
        return "file:" + os.path.abspath(os.path.expanduser(store[len("file:") :]))
    if store.startswith(("file:", "agent:")) or ":" not in store:
        return store
    packaged = PACKAGE / "bin" / "largesse"
    command = str(packaged) if packaged.exists() else shutil.which("largesse")
    if command is None:
        raise Error("no far memory: this store needs the command largesse, which is not in PATH")
    # The store's name may contain a password, and arguments are readable by all users: use standard input.
    words = [command, "agent", "--store", "-", "--owner", str(os.getpid())]
    done = subprocess.run(words, input=store, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    names = done.stdout.splitlines()
    if done.returncode != 0 or len(names) != 1:
        raise Error(f"no far memory: the agent was not started: {done.stderr.strip()}")
    return names[0]


class tuned(Generic[_Item]):
    """Marks a compute core, a piece of work that a program repeats, so that far memory chooses its transfers for it.

    Use it around the work, or around the iterable of a loop. Without far memory, or without the
    library, it has no effect.

    >>> import largesse
    >>> with largesse.tuned("solve"):
    ...     total = sum(range(10))
    >>> for step in largesse.tuned("solve", range(3)):
    ...     total += step
    >>> total
    48
    """

    def __init__(self, name: str, items: Iterable[_Item] = ()) -> None:
        if not isinstance(name, str) or not name or "\0" in name:
            raise Error(f"name must be a text such as 'solve', not {name!r}")
        self._name, self._items, self._begun = name.encode(), items, False

    def __enter__(self) -> tuned[_Item]:
        # A marked program also runs where there is no library.
        self._begun = no_library() is None and library().tune_begin(self._name) == _abi.OK
        return self

    def __exit__(self, *_: Any) -> None:
        if self._begun:
            library().tune_end(self._name)

    def __iter__(self) -> Iterator[_Item]:
        for item in self._items:
            with self:
                yield item
