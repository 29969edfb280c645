"""Objects as last seen, newest version wins, with listeners that keep indexes.

Watch events, answers to own writes and full lists all end here, in any order. An older version never
replaces a newer one, and what was seen to go stays gone. A full list repairs what a watch lost, deletions
included.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

TOMBSTONES: Final = 10_000  # deletions remembered, so that a late event brings nothing back

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Identity(Generic[K]):
    """What a stored object is: its key, the uid of this incarnation, its version."""

    key: K
    uid: str
    version: int


@dataclass(slots=True)
class _Entry(Generic[K, T]):
    identity: Identity[K]
    value: T
    serial: int


Listener = Callable[[T | None, T | None], None]  # old, new


class Cache(Generic[K, T]):
    """One kind of object."""

    def __init__(self, identify: Callable[[T], Identity[K]], *, keep: Callable[[T], T] = lambda value: value) -> None:
        self._identify = identify
        self._keep = keep  # what is kept of a value
        self._entries: dict[K, _Entry[K, T]] = {}
        self._gone: OrderedDict[str, None] = OrderedDict()
        self._listeners: list[Listener[T]] = []
        self._serial = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[T]:
        return (entry.value for entry in tuple(self._entries.values()))

    def get(self, key: K) -> T | None:
        """Return the object as last seen."""
        entry = self._entries.get(key)
        return None if entry is None else entry.value

    def listen(self, listener: Listener[T]) -> None:
        """Call ``listener(old, new)`` on each change from now on."""
        self._listeners.append(listener)

    def store(self, value: T) -> bool:
        """Take a version of an object; False where something newer is known."""
        identity = self._identify(value)
        if identity.uid in self._gone:
            return False
        value = self._keep(value)
        entry = self._entries.get(identity.key)
        if entry is not None and entry.identity.uid == identity.uid:
            if entry.identity.version > identity.version:
                return False
            if entry.identity.version == identity.version and entry.value == value:
                self._touch(entry)
                return True
        elif entry is not None:
            self._bury(entry)
        self._serial += 1
        self._entries[identity.key] = _Entry(identity, value, self._serial)
        self._tell(None if entry is None or entry.identity.uid != identity.uid else entry.value, value)
        return True

    def remove(self, key: K, uid: str) -> bool:
        """Take note that this incarnation of an object is gone."""
        self._remember_gone(uid)
        entry = self._entries.get(key)
        if entry is None or entry.identity.uid != uid:
            return False
        self._bury(entry)
        return True

    def mark(self) -> int:
        """Return a point in time for ``replace``: take it before a full list is asked for."""
        return self._serial

    def replace(self, listed: Iterable[T], *, since: int) -> int:
        """Take a full list asked for at ``since``; returns how many objects had gone unnoticed."""
        present = set()
        for value in listed:
            present.add(self._identify(value).uid)
            self.store(value)
        missed = [
            entry for entry in self._entries.values() if entry.serial <= since and entry.identity.uid not in present
        ]
        for entry in missed:
            self._bury(entry)
        return len(missed)

    def _touch(self, entry: _Entry[K, T]) -> None:
        self._serial += 1
        entry.serial = self._serial

    def _bury(self, entry: _Entry[K, T]) -> None:
        del self._entries[entry.identity.key]
        self._remember_gone(entry.identity.uid)
        self._tell(entry.value, None)

    def _remember_gone(self, uid: str) -> None:
        self._gone[uid] = None
        if len(self._gone) > TOMBSTONES:
            self._gone.popitem(last=False)

    def _tell(self, old: T | None, new: T | None) -> None:
        for listener in self._listeners:
            listener(old, new)
