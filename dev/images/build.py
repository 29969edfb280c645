"""``make images``: fetch, build what changed, keep the results, hand them to the cluster that is up."""

import fcntl
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from images import base, catalog, context, node, wheels
from images.catalog import IMAGES, REPOSITORY, Image
from images.engine import Engine
from images.layout import Layout, Stored
from images.progress import Display, Row
from images.settings import Settings

BUILDERS: Final = 2  # at once; a build is mostly one process


@dataclass(frozen=True, slots=True)
class Built:
    """An image and how long it took."""

    stored: Stored
    seconds: float | None


def build_all(settings: Settings, engine: Engine, display: Display, *, refresh: bool = False) -> None:
    """Do all of it, safe to repeat and to interrupt."""
    with only_one(settings), display.live():
        with ThreadPoolExecutor() as pool:
            root = pool.submit(make_base, settings, engine, display, refresh=refresh)
            locks = sorted({lock for image in IMAGES for lock in image.locks})
            houses = dict(zip(locks, pool.map(lambda lock: fetch(lock, settings, display), locks), strict=True))
            uv = wheels.unpack_uv(houses["agent"], settings)
            base_ref = root.result()
        with ThreadPoolExecutor(BUILDERS) as pool:
            jobs = [
                pool.submit(build_one, image, settings, engine, display, houses=houses, uv=uv, base_ref=base_ref)
                for image in IMAGES
            ]
            results = [job.result() for job in jobs]
        Layout(settings.layout).keep_only({result.stored.ref for result in results})
        record(settings, results)
        hand_over(settings, results, display)
    display.table(
        [
            Row(image.name, result.stored.ref, result.stored.layer_bytes, result.seconds)
            for image, result in zip(IMAGES, results, strict=True)
        ]
    )


def log_of(settings: Settings, job: str) -> Path:
    """Return an emptied log for one job."""
    path = settings.folder / "logs" / f"{job}.log"
    path.unlink(missing_ok=True)
    return path


def fetch(lock: str, settings: Settings, display: Display) -> Path:
    """Fetch one lock's wheels."""
    with display.job(f"wheels: {lock}"):
        return wheels.fetch(lock, settings, log=log_of(settings, f"wheels-{lock}"))


def make_base(settings: Settings, engine: Engine, display: Display, *, refresh: bool) -> str:
    """Make the base unless the engine holds it; return its reference."""
    ref = f"{REPOSITORY}/base:{base.digest(settings)}"
    with display.job(f"base ({engine.name})"):
        if refresh or not engine.has(ref):
            engine.build_base(ref, settings.folder / "contexts" / "base", log=log_of(settings, "base"))
    return ref


def build_one(
    image: Image,
    settings: Settings,
    engine: Engine,
    display: Display,
    *,
    houses: dict[str, Path],
    uv: Path,
    base_ref: str,
) -> Built:
    """Build one image unless the layout holds it."""
    layout = Layout(settings.layout)
    started = time.monotonic()
    folder = settings.folder / "contexts" / image.name
    with display.job(f"image: {image.name}"):
        laid = context.lay_out(image, folder, wheelhouses=houses, uv=uv, base=base_ref)
        ref = f"{REPOSITORY}/{image.name}:{laid.digest}"
        stored = layout.find(ref)
        if stored:
            return Built(stored, None)
        engine.build(ref, folder, arguments=laid.arguments, labels=labels(image), log=log_of(settings, image.name))
        return Built(layout.get(ref), time.monotonic() - started)


def labels(image: Image) -> dict[str, str]:
    """Return what an image says of itself; nothing that changes when the image does not."""
    prefix = "org.opencontainers.image"
    return {
        f"{prefix}.title": f"sandyard-{image.name}",
        f"{prefix}.description": image.description,
        f"{prefix}.version": catalog.version(),
        f"{prefix}.licenses": catalog.LICENSE,
    }


def record(settings: Settings, results: list[Built]) -> None:
    """Write the references that other programs read."""
    known = {
        image.name: {
            "ref": result.stored.ref,
            "digestRef": result.stored.digest_ref,
            "imageID": result.stored.config,
            "bytes": result.stored.layer_bytes,
        }
        for image, result in zip(IMAGES, results, strict=True)
    }
    fresh = settings.record.with_suffix(".new")
    fresh.write_text(json.dumps(known, indent=2) + "\n")
    fresh.rename(settings.record)


def hand_over(settings: Settings, results: list[Built], display: Display) -> None:
    """Load the images into the nodes of the cluster that is up, if one is."""
    for socket in node.sockets(settings):
        with display.job(f"load into {socket.parent.name}"):
            node.load(settings, socket, [result.stored for result in results])


@contextmanager
def only_one(settings: Settings) -> Iterator[None]:
    """Wait for another build of this cache to end."""
    settings.folder.mkdir(parents=True, exist_ok=True)
    with (settings.folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
