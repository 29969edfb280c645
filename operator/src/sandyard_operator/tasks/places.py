"""Who holds a place and who waits, per namespace and class, kept up to date task by task.

An ordered index over the cache: a question about one task costs no walk over the others. An admission that
is being written counts at once, so two workers never give the same place away.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from heapq import merge
from itertools import islice
from typing import TypeAlias

from sandyard_api.task import SandboxTask
from sandyard_operator.decide.facts import Place
from sandyard_operator.decide.standing import Standing, standing_of, waits_for_quota
from sandyard_operator.ports import Key

Order: TypeAlias = tuple[datetime, str]  # creationTimestamp, then uid
BucketName: TypeAlias = tuple[str, str]  # namespace, class


def key_of(task: SandboxTask) -> Key:
    """Return the key of a task."""
    metadata = task.metadata
    return Key(namespace=metadata.namespace, name=metadata.name, uid=metadata.uid)


def bucket_of(task: SandboxTask) -> BucketName:
    """Return whose places a task competes for."""
    return task.metadata.namespace, task.spec.sandbox_class_name


def order_of(task: SandboxTask) -> Order:
    """Return a task's rank among the others."""
    return task.metadata.creation_timestamp, task.metadata.uid


@dataclass(frozen=True, slots=True)
class _Holder:
    key: Key
    order: Order
    claimed: bool  # W1 is written
    quota: bool  # waits for quota


@dataclass(slots=True)
class _Bucket:
    admitted: dict[str, _Holder] = field(default_factory=dict)  # by uid
    fresh: list[tuple[Order, Key]] = field(default_factory=list)
    queued: list[tuple[Order, Key]] = field(default_factory=list)


class Places:
    """The index; ``track`` and ``untrack`` follow the cache."""

    def __init__(self, *, has_pod: Callable[[str], bool]) -> None:
        self._has_pod = has_pod
        self._namespaces: dict[str, dict[str, _Bucket]] = {}  # then by class
        self._reserved: dict[str, _Holder] = {}

    def change(self, old: SandboxTask | None, new: SandboxTask | None) -> None:
        """Follow a change of the cache."""
        if old is not None:
            self._drop(old)
            if new is None:
                self._reserved.pop(old.metadata.uid, None)
        if new is not None:
            self._put(new)

    def reserve(self, task: SandboxTask) -> None:
        """Count the task as admitted while its admission is being written."""
        self._drop(task)
        holder = _Holder(key_of(task), order_of(task), claimed=False, quota=False)
        self._reserved[task.metadata.uid] = holder
        self._bucket(bucket_of(task)).admitted[task.metadata.uid] = holder

    def settle(self, reserved: SandboxTask, current: SandboxTask | None) -> None:
        """End a reservation: from now on the task counts as its status says, if it is still there."""
        if self._reserved.pop(reserved.metadata.uid, None) is not None:
            self._drop(reserved)
            if current is not None:
                self._drop(current)
                self._put(current)

    def of(self, task: SandboxTask) -> Place:
        """Return a task's place."""
        bucket = self._find(bucket_of(task)) or _Bucket()
        uid, order = task.metadata.uid, order_of(task)
        others = [holder for holder in bucket.admitted.values() if holder.key.uid != uid]
        fresh_before, queued_before = self._rank(bucket.fresh, order), self._rank(bucket.queued, order)
        itself = bucket.queued[queued_before : queued_before + 1]
        queued_others = len(bucket.queued) - sum(key.uid == uid for _, key in itself)
        return Place(
            admitted=len(others),
            waiting_before=fresh_before + queued_before,
            waiting_taken=fresh_before + queued_others,
            placed_before=sum(
                holder.order < order or holder.claimed or self._has_pod(holder.key.uid) for holder in others
            ),
            quota_before=any(
                holder.quota and holder.order < order and not self._has_pod(holder.key.uid) for holder in others
            ),
        )

    def first_waiting(self, name: BucketName, count: int) -> tuple[Key, ...]:
        """Return the keys that come next."""
        bucket = self._find(name)
        if bucket is None:
            return ()
        return tuple(key for _, key in islice(merge(bucket.fresh, bucket.queued), count))

    def held_up(self, namespace: str) -> Iterator[Key]:
        """Yield the tasks of a namespace that hold a place but have no pod yet."""
        for bucket in self._namespaces.get(namespace, {}).values():
            yield from (h.key for h in bucket.admitted.values() if not self._has_pod(h.key.uid))

    def unfinished(self, class_name: str) -> Iterator[Key]:
        """Yield all tasks of a class that are not finished."""
        for buckets in self._namespaces.values():
            if (bucket := buckets.get(class_name)) is not None:
                yield from (holder.key for holder in bucket.admitted.values())
                yield from (key for _, key in merge(bucket.fresh, bucket.queued))

    def admitted(self, name: BucketName) -> int:
        """Return how many places are taken."""
        bucket = self._find(name)
        return 0 if bucket is None else len(bucket.admitted)

    def _find(self, name: BucketName) -> _Bucket | None:
        return self._namespaces.get(name[0], {}).get(name[1])

    def _bucket(self, name: BucketName) -> _Bucket:
        return self._namespaces.setdefault(name[0], {}).setdefault(name[1], _Bucket())

    @staticmethod
    def _rank(entries: list[tuple[Order, Key]], order: Order) -> int:
        return bisect_left(entries, order, key=lambda entry: entry[0])

    def _put(self, task: SandboxTask) -> None:
        uid, standing = task.metadata.uid, standing_of(task)
        if standing is Standing.FINISHED:
            return
        bucket = self._bucket(bucket_of(task))
        if standing is Standing.ADMITTED or uid in self._reserved:
            bucket.admitted[uid] = self._reserved.get(uid) or _Holder(
                key_of(task),
                order_of(task),
                claimed=task.status is not None and task.status.run is not None,
                quota=waits_for_quota(task),
            )
        elif standing is Standing.QUEUED:
            insort(bucket.queued, (order_of(task), key_of(task)))
        else:
            insort(bucket.fresh, (order_of(task), key_of(task)))

    def _drop(self, task: SandboxTask) -> None:
        namespace, class_name = name = bucket_of(task)
        bucket = self._bucket(name)
        bucket.admitted.pop(task.metadata.uid, None)
        entry = (order_of(task), key_of(task))
        for entries in (bucket.fresh, bucket.queued):
            at = self._rank(entries, entry[0])
            if at < len(entries) and entries[at] == entry:
                del entries[at]
        if not (bucket.admitted or bucket.fresh or bucket.queued):
            del self._namespaces[namespace][class_name]
            if not self._namespaces[namespace]:
                del self._namespaces[namespace]
