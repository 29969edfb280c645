"""The command line of the image build; the Makefile's image verbs call it."""

import argparse
import json
import sys
from pathlib import Path

from images import engine, registry
from images.build import build_all, log_of
from images.errors import ImageError
from images.progress import Display
from images.settings import Settings


def main() -> None:
    """Run one verb; exit 1 with its message when it fails."""
    parser = argparse.ArgumentParser(prog="images", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    build = verbs.add_parser("build", help="build what changed and load it into the cluster that is up")
    build.add_argument("--refresh", action="store_true", help="make the base anew, with Debian's updates")
    verbs.add_parser("list", help="print the references of the images last built")
    archive = verbs.add_parser("archive", help="write each image as an OCI archive")
    archive.add_argument("folder", type=Path)
    push = verbs.add_parser("push", help="copy the images to a registry and print their digests there")
    push.add_argument("registry", help="registry and path, such as registry.example/sandyard")
    options = parser.parse_args()
    settings = Settings.from_environment()
    try:
        match options.verb:
            case "build":
                chosen = engine.choose(settings, log=log_of(settings, "engine"))
                build_all(settings, chosen, Display(), refresh=options.refresh)
            case "list":
                registry.print_list(settings)
            case "archive":
                registry.write_archives(settings, options.folder)
            case "push":
                chosen = engine.choose(settings, log=log_of(settings, "engine"))
                registry.push_all(settings, chosen, options.registry)
    except ImageError as error:
        sys.exit(f"images: {error}")
    except KeyboardInterrupt:
        sys.exit("images: interrupted; run the same command again to go on")


if __name__ == "__main__":
    main()
