"""The command line: up, down, status, kubeconfig, load-image."""

import argparse
import json
import os
import sys
from pathlib import Path

from sandyard_node.errors import NodeError
from sandyard_node.progress import Progress
from sandyard_node.providers import Provider, choose
from sandyard_node.settings import Settings


def main() -> int:
    """Run one command; exit 1 with what happened and what to do next."""
    arguments = _parser().parse_args()
    progress = Progress()
    try:
        settings = Settings.from_environment()
        if arguments.command == "kubeconfig":
            print(settings.kubeconfig)
            return 0
        return _run(arguments, choose(settings, progress, os.environ), settings, progress)
    except NodeError as error:
        progress.console.print(f"cluster: {error}", markup=False, style="red", soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        progress.say("interrupted; run the same command again to go on")
        return 130


def _run(arguments: argparse.Namespace, provider: Provider, settings: Settings, progress: Progress) -> int:
    command: str = arguments.command
    if command == "up":
        provider.up()
        progress.say("[bold]the cluster is ready[/]; for kubectl, helm and tests:")
        print(f"export KUBECONFIG={settings.kubeconfig}")
        print(f"export PATH={settings.bin}:$PATH")
    elif command == "down":
        provider.down(purge=arguments.purge)
    elif command == "load-image":
        for archive in arguments.archives:
            with progress.step(f"load {archive.name}"):
                print(provider.load_image(archive), end="")
    else:
        status = provider.status()
        print(json.dumps(status, indent=1))
        return 0 if status["ready"] else 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="sandyard_node", description="A Kubernetes for development.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up", help="make it run; safe to repeat")
    down = commands.add_parser("down", help="stop it")
    down.add_argument("--purge", action="store_true", help="forget imported images and certificates too")
    commands.add_parser("status", help="what runs, as JSON; exit 1 unless it is ready")
    commands.add_parser("kubeconfig", help="where the kubeconfig is")
    load = commands.add_parser("load-image", help="import OCI or Docker archives into every node")
    load.add_argument("archives", nargs="+", type=Path)
    return parser


if __name__ == "__main__":
    sys.exit(main())
