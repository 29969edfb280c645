"""Under a user namespace a bound on processes is the pod's own; without one it would count per user of the node."""

from pathlib import Path

import pytest

from harness.runner import Room, Runner

CHILDREN = """
import os, time
made = 0
try:
    for _ in range(60):
        if os.fork() == 0:
            time.sleep(600)
        made += 1
except BlockingIOError:
    pass
print(made)
"""


@pytest.mark.parametrize("user_namespace", [False, True])
def test_processes_are_bounded_under_a_user_namespace_alone(tmp_path: Path, *, user_namespace: bool) -> None:
    with Runner(Room(tmp_path, user_namespace=user_namespace)) as runner:
        assert runner.ready["isolation"]["userNamespace"] is user_namespace
        end = runner.run(CHILDREN, limits={"processes": 20})
    made = int(end.text)
    assert 10 <= made < 20 if user_namespace else made == 60


def test_a_run_is_the_same_under_a_user_namespace(tmp_path: Path) -> None:
    code = (
        "import os, subprocess, sys\nprint(os.getuid(), open('/proc/self/oom_score_adj').read().strip())\n"
        "open('/workspace/output/a', 'w').write('x')\nsubprocess.run([sys.executable, '-c', 'print(2)'])"
    )
    with Runner(Room(tmp_path, user_namespace=True)) as runner:
        end = runner.run(code)
    assert (end.outcome, end.text, end.artifacts) == ("exited", "10002 1000\n2\n", {"a": b"x"})
