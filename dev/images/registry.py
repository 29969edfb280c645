"""Name the built images for people: a list, archives for machines without a network, copies in a registry."""

import json
from pathlib import Path
from typing import Any

from images.catalog import REPOSITORY
from images.engine import Engine
from images.errors import ImageError
from images.layout import Layout
from images.programs import fresh_log
from images.settings import Settings


def last_built(settings: Settings) -> dict[str, dict[str, Any]]:
    """Return what ``make images`` recorded."""
    try:
        known: dict[str, dict[str, Any]] = json.loads(settings.record.read_bytes())
    except FileNotFoundError as error:
        raise ImageError("no images have been built.", fix="run: make images") from error
    return known


def print_list(settings: Settings) -> None:
    """Print one line an image: name, reference by tag, reference by digest."""
    for name, image in last_built(settings).items():
        print(name, image["ref"], image["digestRef"], sep="\t")


def write_archives(settings: Settings, folder: Path) -> None:
    """Write ``NAME.tar``, an OCI archive, for each image, and print where it is."""
    folder.mkdir(parents=True, exist_ok=True)
    layout = Layout(settings.layout)
    for name, image in last_built(settings).items():
        path = folder / f"{name}.tar"
        fresh = path.with_suffix(".new")
        with fresh.open("wb") as file:
            layout.write_archive(layout.get(image["ref"]), file, names=(image["ref"],), without=())
        fresh.rename(path)
        print(name, image["ref"], path, sep="\t")


def push_all(settings: Settings, engine: Engine, registry: str) -> None:
    """Copy each image below ``registry`` and print its reference there, by digest."""
    for name, image in last_built(settings).items():
        target = image["ref"].replace(REPOSITORY, registry.rstrip("/"), 1)
        digest = engine.push(image["ref"], target, log=fresh_log(settings, f"push-{name}"))
        print(name, f"{target.rpartition(':')[0]}@{digest}", sep="\t")
