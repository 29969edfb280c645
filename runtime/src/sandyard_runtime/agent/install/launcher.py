"""The installer's first process: confines itself, then runs the given commands one by one, each when told.

Started as a program with a JSON plan as its argument. A line on stdin starts the next command; its wait
status goes out on stdout; whatever a command prints goes to stderr. Standard library only.
"""

import json
import os
import sys


def main() -> None:
    """Run the plan."""
    plan = json.loads(sys.argv[1])
    sys.path.insert(0, plan["source"])
    from sandyard_runtime.agent.install.confine import confine

    confine(readable=tuple(plan["readable"]), writable=tuple(plan["writable"]), max_file_bytes=plan["max_file_bytes"])
    for command in plan["commands"]:
        if not sys.stdin.readline():
            return
        child = os.posix_spawn(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, 2, 1)])
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201 - its only voice


if __name__ == "__main__":
    main()
