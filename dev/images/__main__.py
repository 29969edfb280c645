"""The command line of the image build; the Makefile's image verbs call it."""

import argparse
import sys
from pathlib import Path

from images import engine, locks, registry
from images.build import Build
from images.errors import ImageError
from images.programs import fresh_log
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
    lock = verbs.add_parser("lock", help="resolve the images' packages into locks/")
    lock.add_argument("--upgrade", action="store_true", help="take newer versions where there are")
    options = parser.parse_args()
    settings = Settings.from_environment()
    try:
        match options.verb:
            case "build":
                chosen = engine.choose(settings, log=fresh_log(settings, "engine"))
                Build(settings, chosen, Display()).run(refresh=options.refresh)
            case "list":
                registry.print_list(settings)
            case "archive":
                registry.write_archives(settings, options.folder)
            case "lock":
                locks.resolve_all(settings, upgrade=options.upgrade)
            case _:  # push: argparse lets nothing else through
                chosen = engine.choose(settings, log=fresh_log(settings, "engine"))
                registry.push_all(settings, chosen, options.registry)
    except ImageError as error:
        sys.exit(f"images: {error}")
    except KeyboardInterrupt:
        sys.exit("images: interrupted; run the same command again to go on")


if __name__ == "__main__":
    main()
