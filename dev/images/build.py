"""``make images``: fetch, build what changed, keep the results, hand them to the cluster that is up."""

import fcntl
import json
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from images import base, context, node, wheels
from images.catalog import IMAGES, REPOSITORY, Image
from images.engine import Engine
from images.layout import Layout, Stored
from images.programs import fresh_log
from images.progress import Display, Row
from images.settings import Settings

BUILDERS: Final = 2  # at once; a build is mostly one process


@dataclass(frozen=True, slots=True)
class Ingredients:
    """What all images are built from."""

    base: str  # reference
    wheelhouses: Mapping[str, Path]
    uv: Path


@dataclass(frozen=True, slots=True)
class Built:
    """An image and how long it took."""

    image: Image
    stored: Stored
    seconds: float | None  # None when nothing had changed


@dataclass(frozen=True, slots=True)
class Build:
    """One run of the build; safe to repeat and to interrupt."""

    settings: Settings
    engine: Engine
    display: Display

    def run(self, *, refresh: bool = False) -> None:
        """Do all of it; ``refresh`` makes the base anew."""
        with only_one(self.settings), self.display.live():
            ingredients = self.gather(refresh=refresh)
            with ThreadPoolExecutor(BUILDERS) as pool:
                results = list(pool.map(lambda image: self.build(image, ingredients), IMAGES))
            refs = [ingredients.base, *(result.stored.ref for result in results)]
            self.engine.keep_only(refs, log=fresh_log(self.settings, "store"))
            Layout(self.settings.layout).keep_only(refs)
            record(self.settings, results)
            self.hand_over([result.stored for result in results])
        rows = [Row(each.image.name, each.stored.ref, each.stored.layer_bytes, each.seconds) for each in results]
        self.display.table(rows)

    def gather(self, *, refresh: bool) -> Ingredients:
        """Make the base and fetch all wheels, at the same time."""
        locks = sorted({lock for image in IMAGES for lock in image.locks})
        with ThreadPoolExecutor(len(locks) + 1) as pool:
            root = pool.submit(self.make_base, refresh=refresh)
            houses = dict(zip(locks, pool.map(self.fetch, locks), strict=True))
            uv = wheels.unpack_uv(houses["agent"], self.settings)
            return Ingredients(root.result(), houses, uv)

    def make_base(self, *, refresh: bool) -> str:
        """Make the base unless the engine holds it; return its reference."""
        ref = f"{REPOSITORY}/base:{base.digest(self.settings)}"
        if refresh or not self.engine.has(ref):
            with self.display.job(f"base ({self.engine.name})"):
                folder = self.settings.folder / "contexts" / "base"
                self.engine.build_base(ref, folder, log=fresh_log(self.settings, "base"))
        return ref

    def fetch(self, lock: str) -> Path:
        """Fetch one lock's wheels unless they are there; return their folder."""
        house = wheels.folder(lock, self.settings)
        if not house.is_dir():
            with self.display.job(f"wheels: {lock}"):
                wheels.fetch(lock, self.settings, log=fresh_log(self.settings, f"wheels-{lock}"))
        return house

    def build(self, image: Image, ingredients: Ingredients) -> Built:
        """Build one image unless the layout holds it."""
        started = time.monotonic()
        laid = context.lay_out(
            image,
            self.settings.folder / "contexts" / image.name,
            wheelhouses=ingredients.wheelhouses,
            uv=ingredients.uv,
            base=ingredients.base,
        )
        ref = f"{REPOSITORY}/{image.name}:{laid.digest}"
        layout = Layout(self.settings.layout)
        stored = layout.find(ref)
        if stored:
            return Built(image, stored, None)
        with self.display.job(f"image: {image.name}"):
            log = fresh_log(self.settings, image.name)
            self.engine.build(ref, laid.folder, arguments=laid.arguments, log=log)
        return Built(image, layout.get(ref), time.monotonic() - started)

    def hand_over(self, images: list[Stored]) -> None:
        """Load the images into the nodes of the cluster that is up, if one is."""
        for receiver in node.receivers(self.settings):
            missing = receiver.missing(images)
            if missing:
                with self.display.job(f"load {len(missing)} into {receiver.name}"):
                    receiver.load(missing)


def record(settings: Settings, results: list[Built]) -> None:
    """Write the references that other programs read."""
    known = {
        result.image.name: {
            "ref": result.stored.ref,
            "digestRef": result.stored.digest_ref,
            "imageID": result.stored.config,
            "bytes": result.stored.layer_bytes,
        }
        for result in results
    }
    fresh = settings.record.with_suffix(".new")
    fresh.write_text(json.dumps(known, indent=2) + "\n")
    fresh.rename(settings.record)


@contextmanager
def only_one(settings: Settings) -> Iterator[None]:
    """Wait for another build of this cache to end."""
    settings.folder.mkdir(parents=True, exist_ok=True)
    with (settings.folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
