"""Files placed before a run, artifacts collected after it: regular files, within bounds, never through a link."""

import pytest

from harness.runner import Runner


def test_files_are_where_the_script_looks(runner: Runner) -> None:
    big = bytes(range(256)) * 8192
    assert runner.place({"data/in.csv": b"a,b\n1,2\n", "big.bin": big, "empty": b""}).kind == "placed"
    end = runner.run(
        "import os\nprint(open('data/in.csv').read(), os.path.getsize('big.bin'), os.path.getsize('empty'))\n"
        "open('data/in.csv', 'a').write('3,4\\n')"
    )
    assert end.text == f"a,b\n1,2\n {len(big)} 0\n"
    assert end.exited["exitCode"] == 0


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "", "a//b", "./a", "a\0b"])
def test_a_path_out_of_the_workspace_is_refused(runner: Runner, path: str) -> None:
    answer = runner.place({path: b"x", "fine": b"y"})
    assert answer.kind == "placeFailed"
    assert "leaves the workspace" in answer.header["message"]


def test_a_file_in_the_place_of_another_is_refused(runner: Runner) -> None:
    assert "File exists" in runner.place({"a/b": b"", "a": b"x"}).header["message"]


def test_a_module_beside_the_script_is_imported(runner: Runner) -> None:
    runner.place({"mine.py": b"VALUE = 42\n"})
    assert runner.run("import mine\nprint(mine.VALUE, mine.__file__)").text == "42 /workspace/mine.py\n"


def test_artifacts_come_whole_and_sorted(runner: Runner) -> None:
    code = (
        "import os\nos.makedirs('output/plots/deep')\n"
        "open('output/b.bin', 'wb').write(bytes(range(256)) * 4096)\n"
        "open('output/a.txt', 'w').write('a')\nopen('output/plots/deep/c.txt', 'w').close()\n"
        "open('output/caf\\u00e9 \\U0001f4a9.txt', 'w').write('name')\n"
        "open(os.environ['SANDYARD_OUTPUT_DIR'] + '/secret', 'w').close(); os.chmod('output/secret', 0o600)\n"
    )
    end = runner.run(code)
    assert list(end.artifacts) == ["a.txt", "b.bin", "caf\u00e9 \U0001f4a9.txt", "plots/deep/c.txt", "secret"]
    assert end.artifacts["b.bin"] == bytes(range(256)) * 4096
    assert end.warnings == []


def test_what_is_no_regular_file_is_left_out(runner: Runner) -> None:
    runner.place({"secret.txt": b"not an artifact"})
    code = (
        "import os\nos.chdir('output')\nos.symlink('../secret.txt', 'link')\nos.symlink('/usr', 'folder')\n"
        "os.symlink('/etc/passwd', 'users')\nos.mkfifo('fifo')\nopen('bad\\nname', 'w').close()\n"
        "open(b'bad\\xff', 'w').close()\nopen('real', 'w').write('r')\n"
    )
    end = runner.run(code, timeout=20)
    assert end.artifacts == {"real": b"r"}
    assert end.warnings == [
        "6 artifacts were left out: at most 256 regular files and 16777216 bytes, with printable names"
    ]


@pytest.mark.parametrize("target", ["/usr", "/workspace", "/"])
def test_an_output_folder_that_has_become_a_link_gives_nothing(runner: Runner, target: str) -> None:
    end = runner.run(f"import os\nos.rmdir('output')\nos.symlink({target!r}, 'output')")
    assert (end.artifacts, end.warnings) == ({}, ["the output folder is not one any more"])


def test_artifacts_are_bounded_in_bytes_and_count(runner: Runner) -> None:
    code = (
        "open('output/0-large', 'wb').write(b'x' * 2000)\n"
        "for i in range(1, 7): open(f'output/{i}', 'wb').write(b'x' * 100)\n"
    )
    end = runner.run(code, limits={"artifactBytes": 1000, "artifactCount": 4})
    assert list(end.artifacts) == ["1", "2", "3", "4"]
    assert end.warnings[0].startswith("3 artifacts were left out")


def test_an_artifact_of_exactly_the_bound_is_kept(runner: Runner) -> None:
    end = runner.run("open('output/a', 'wb').write(b'x' * 1000)", limits={"artifactBytes": 1000})
    assert len(end.artifacts["a"]) == 1000


def test_a_sparse_file_counts_at_its_length(runner: Runner) -> None:
    end = runner.run("open('output/a', 'wb').truncate(32 << 20)")
    assert end.artifacts == {}
    assert end.warnings[0].startswith("1 artifacts were left out")


def test_a_very_deep_output_is_looked_at_so_far(runner: Runner) -> None:
    code = (
        "import os\nos.chdir('output')\nfor _ in range(500):\n    open('f', 'w').close(); os.mkdir('d'); os.chdir('d')"
    )
    end = runner.run(code)
    assert len(end.artifacts) == 33
    assert end.warnings[0].startswith("1 artifacts were left out")


def test_artifacts_of_a_run_that_was_stopped_are_kept(runner: Runner) -> None:
    end = runner.run("import time\nopen('output/a', 'w').write('part')\ntime.sleep(600)", timeout=0.5)
    assert (end.outcome, end.artifacts) == ("timeout", {"a": b"part"})
