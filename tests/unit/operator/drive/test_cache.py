"""Newest version wins, what went stays gone, and a full list repairs what a watch lost."""

from dataclasses import dataclass

from sandyard_operator.drive import cache as module
from sandyard_operator.drive.cache import Cache, Identity


@dataclass(frozen=True)
class Thing:
    """An object."""

    name: str
    uid: str
    version: int
    text: str = ""


def new_cache() -> tuple[Cache[str, Thing], list[tuple[Thing | None, Thing | None]]]:
    seen: list[tuple[Thing | None, Thing | None]] = []
    cache: Cache[str, Thing] = Cache(lambda t: Identity(t.name, t.uid, t.version))
    cache.listen(lambda old, new: seen.append((old, new)))
    return cache, seen


ONE, TWO = Thing("a", "u", 1), Thing("a", "u", 2)


def test_a_newer_version_replaces_an_older_one_and_never_the_other_way() -> None:
    cache, seen = new_cache()
    assert cache.store(TWO)
    assert not cache.store(ONE)
    assert cache.get("a") == TWO
    assert seen == [(None, TWO)]


def test_the_same_again_is_no_change() -> None:
    cache, seen = new_cache()
    cache.store(ONE)
    assert cache.store(Thing("a", "u", 1))
    assert len(seen) == 1


def test_the_same_version_with_another_reading_is_a_change() -> None:
    cache, seen = new_cache()
    cache.store(ONE)
    cache.store(Thing("a", "u", 1, "other"))
    assert len(seen) == 2


def test_another_object_of_that_name_ends_the_first() -> None:
    cache, seen = new_cache()
    cache.store(TWO)
    again = Thing("a", "v", 3)
    cache.store(again)
    assert seen[1:] == [(TWO, None), (None, again)]
    assert not cache.store(Thing("a", "u", 9))


def test_what_went_stays_gone() -> None:
    cache, seen = new_cache()
    cache.store(ONE)
    assert cache.remove("a", "u")
    assert not cache.store(TWO)
    assert cache.get("a") is None
    assert seen[-1] == (ONE, None)
    assert len(cache) == 0


def test_an_end_seen_before_the_beginning_counts() -> None:
    cache, seen = new_cache()
    assert not cache.remove("a", "u")
    assert not cache.store(ONE)
    assert seen == []


def test_the_end_of_another_of_that_name_is_not_this_ones() -> None:
    cache, _ = new_cache()
    cache.store(TWO)
    assert not cache.remove("a", "other")
    assert list(cache) == [TWO]


def test_a_full_list_finds_what_went_unnoticed() -> None:
    cache, seen = new_cache()
    cache.store(ONE)
    cache.store(Thing("b", "w", 1))
    assert cache.replace([Thing("b", "w", 1)], since=cache.mark()) == 1
    assert [t.name for t in cache] == ["b"]
    assert seen[-1] == (ONE, None)


def test_what_came_after_the_list_was_asked_for_stays() -> None:
    cache, _ = new_cache()
    since = cache.mark()
    cache.store(ONE)
    assert cache.replace([], since=since) == 0
    assert cache.get("a") == ONE


def test_what_was_seen_again_after_the_list_was_asked_for_stays() -> None:
    cache, _ = new_cache()
    cache.store(ONE)
    since = cache.mark()
    cache.store(ONE)
    assert cache.replace([], since=since) == 0


def test_a_list_brings_nothing_back() -> None:
    cache, _ = new_cache()
    cache.store(ONE)
    cache.remove("a", "u")
    cache.replace([TWO], since=cache.mark())
    assert cache.get("a") is None


def test_what_went_long_ago_is_forgotten_at_last() -> None:
    cache, _ = new_cache()
    for number in range(module.TOMBSTONES + 1):
        cache.remove("x", f"u{number}")
    assert not cache.store(Thing("x", f"u{module.TOMBSTONES}", 1))
    assert cache.store(Thing("x", "u0", 1))
