"""What a script can rely on: an interpreter as python itself gives it, with children, threads and pools."""

import json
from typing import Final

import pytest

from harness.runner import Runner

FUTURE: Final = "from __future__ import annotations\ndef f(x: Missing): return x\nprint(f.__annotations__)"
SAME_AS_PYTHON: Final[dict[str, tuple[str | bytes, str | None]]] = {
    "its name": ("print(__name__, __spec__, __file__)", "__main__ None /tmp/sandyard/script.py\n"),
    "its arguments": ("import sys; print(sys.argv)", "['/tmp/sandyard/script.py', 'one', 't w o']\n"),
    "its own text": ("import inspect\ndef f(): return 1\nprint(inspect.getsource(f))", "def f(): return 1\n\n"),
    "its folder": ("import os; print(os.getcwd(), os.environ['HOME'])", "/workspace /workspace\n"),
    "UTF-8": ("import sys; print('é€💩', sys.stdout.encoding, sys.getfilesystemencoding())", "é€💩 utf-8 utf-8\n"),
    "the built-in exit": ("print(exit, quit, help is not None)", None),
    "no root": ("import os; print(os.getuid() > 0, os.getgid() > 0)", "True True\n"),
    "streams": (
        "import sys; print(sys.stdin.name, sys.stdout.name, sys.stderr.name, sys.stdout.mode)",
        "<stdin> <stdout> <stderr> w\n",
    ),
    "threads": (
        "import threading\nt = threading.Thread(target=print, args=('in a thread',))\nt.start()",
        "in a thread\n",
    ),
    "asyncio": (
        (
            "import asyncio\nasync def f():\n"
            "    p = await asyncio.create_subprocess_exec('/usr/bin/echo', 'hi', stdout=-1)\n"
            "    return (await p.communicate())[0]\nprint(asyncio.run(f()), asyncio.run(asyncio.to_thread(lambda: 1)))"
        ),
        "b'hi\\n' 1\n",
    ),
    "subprocess": (
        "import subprocess, sys\nprint(subprocess.check_output([sys.executable, '-c', 'print(2)']))",
        "b'2\\n'\n",
    ),
    "a shell": ("import os; print(os.popen('echo shell').read())", "shell\n\n"),
    "a pool by fork": (
        (
            "import multiprocessing as m\ndef f(x): return x * x\nif __name__ == '__main__':\n"
            "    with m.get_context('fork').Pool(2) as p: print(p.map(f, range(4)))"
        ),
        "[0, 1, 4, 9]\n",
    ),
    "a pool by spawn": (
        (
            "import multiprocessing as m\ndef f(x): return x * x\nif __name__ == '__main__':\n"
            "    with m.get_context('spawn').Pool(2) as p: print(p.map(f, range(4)))"
        ),
        "[0, 1, 4, 9]\n",
    ),
    "an executor of processes": (
        (
            "from concurrent.futures import ProcessPoolExecutor as P\n"
            "def f(x): return x + 1\nif __name__ == '__main__':\n"
            "    with P(2) as p: print(list(p.map(f, range(3))))"
        ),
        "[1, 2, 3]\n",
    ),
    "a pipe of multiprocessing": (
        "import multiprocessing as m\na, b = m.Pipe()\na.send({'x': 1})\nprint(b.recv())",
        "{'x': 1}\n",
    ),
    "shared memory": (
        (
            "from multiprocessing.shared_memory import SharedMemory as S\n"
            "s = S(create=True, size=10)\ns.buf[0] = 7\nt = S(s.name)\nprint(t.buf[0])\n"
            "t.close(); s.close(); s.unlink()"
        ),
        "7\n",
    ),
    "pickle of its own classes": (
        "import pickle\nclass C: pass\nprint(type(pickle.loads(pickle.dumps(C()))).__module__)",
        "__main__\n",
    ),
    "exit handlers": ("import atexit; atexit.register(print, 'at exit'); print('main')", "main\nat exit\n"),
    "a file left open is written": (
        (
            "f = open('/tmp/x', 'w'); f.write('kept')\nimport atexit, os\nif os.fork() == 0: pass\nelse:\n"
            "    os.wait(); print(open('/tmp/x').read())"
        ),
        "kept\n",
    ),
    "a temporary file": ("import tempfile\nwith tempfile.NamedTemporaryFile() as f: print(f.name[:5])", "/tmp/\n"),
    "a local server is refused": (
        "import socket\ntry: socket.create_server(('127.0.0.1', 0))\nexcept PermissionError as e: print(e.errno)",
        "1\n",
    ),
    "a coding line": (b"# -*- coding: latin-1 -*-\nprint('\xe9')", "é\n"),
    "a byte order mark": (b"\xef\xbb\xbfprint(1)", "1\n"),
    "CRLF": ("print(1)\r\nif True:\r\n    print(2)\r\n", "1\n2\n"),
    "a future import": (
        FUTURE,
        "{'x': 'Missing'}\n",
    ),
    "no leftovers of ours": ("import sys; print([m for m in sys.modules if 'sandyard' in m])", "[]\n"),
    "its environment": (
        "import os; print(sorted(os.environ), os.environ['LANG'], 'POD_SETTING' in os.environ)",
        None,
    ),
    "the standard library before packages": (
        "import sys; print(sys.path[0], sys.path[-2:])",
        "/workspace ['/sandyard/packages/site', '/opt/sandyard/site']\n",
    ),
    "the highest descriptor": ("import os; print(sorted(os.listdir('/proc/self/fd')))", "['0', '1', '2', '3', '4']\n"),
    "the script of 256 KiB": ("#" + "💩" * 65535 + "\nprint('long')", "long\n"),
}


@pytest.mark.parametrize("name", SAME_AS_PYTHON)
def test_a_script_finds(runner: Runner, name: str) -> None:
    code, expected = SAME_AS_PYTHON[name]
    end = runner.run(code, args=["one", "t w o"], env={"MINE": "1"})
    assert (end.outcome, end.exited["exitCode"], end.stderr) == ("exited", 0, b"")
    assert expected is None or end.text == expected


def test_the_environment_is_the_allowed_one_and_the_tasks(runner: Runner) -> None:
    end = runner.run("import json, os; print(json.dumps(dict(os.environ)))", env={"MINE": "m", "TZ": "Europe/Rome"})
    found = json.loads(end.text)
    assert found.pop("OMP_NUM_THREADS") == found.pop("OPENBLAS_NUM_THREADS")
    assert found == {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": "/workspace",
        "LANG": "C.UTF-8",
        "TMPDIR": "/tmp",
        "TZ": "Europe/Rome",
        "MPLBACKEND": "Agg",
        "MPLCONFIGDIR": "/tmp/.matplotlib",
        "SANDYARD_OUTPUT_DIR": "/workspace/output",
        "MINE": "m",
    }


def test_packages_come_after_the_standard_library_and_before_the_images(runner: Runner) -> None:
    room = runner.room
    for folder, text in ((room.site, "packages"), (room.image_site, "image")):
        (folder / "both.py").write_text(f"ORIGIN = {text!r}")
        (folder / "json.py").write_text("raise SystemExit('shadowed')")
        (folder / "evil.pth").write_text("import os; os.write(1, b'pth ran')\n")
        (folder / "sitecustomize.py").write_text("import os; os.write(1, b'sitecustomize ran')\n")
    (room.image_site / "imaged.py").write_text("ORIGIN = 'image'")
    end = runner.run("import both, imaged, json\nprint(both.ORIGIN, imaged.ORIGIN, json.__name__)")
    assert end.text == "packages image json\n"


def test_the_images_list_of_fonts_is_there_and_the_folder_is_the_scripts(runner: Runner) -> None:
    (runner.room.image_site / ".matplotlib").mkdir()
    (runner.room.image_site / ".matplotlib/fontlist-v390.json").write_text("fonts")
    code = "import os\nos.chdir(os.environ['MPLCONFIGDIR'])\nprint(open('fontlist-v390.json').read())\nopen('own', 'w')"
    assert runner.run(code).text == "fonts\n"


def test_a_child_interpreter_finds_the_packages_too(runner: Runner) -> None:
    (runner.room.site / "own.py").write_text("print('found', __file__)")
    end = runner.run("import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import own'], check=True)")
    assert end.text == "found /sandyard/packages/site/own.py\n"


def test_an_exception_is_told_with_the_users_frames_alone(runner: Runner) -> None:
    end = runner.run("def f(x):\n    return 1 / x\n\n\nf(0)\n")
    assert (end.exited["errorType"], end.exited["errorMessage"]) == ("ZeroDivisionError", "division by zero")
    assert end.exited["traceback"] == end.stderr.decode()
    assert "sandyard_runtime" not in end.exited["traceback"]
    assert end.exited["traceback"].startswith(
        'Traceback (most recent call last):\n  File "/tmp/sandyard/script.py", line 5, in <module>\n    f(0)\n'
    )


def test_a_syntax_error_names_its_line(runner: Runner) -> None:
    end = runner.run("x = 1\ndef f(:\n")
    assert (end.exited["errorType"], end.exited["exitCode"]) == ("SyntaxError", 1)
    assert 'File "/tmp/sandyard/script.py", line 2' in end.exited["traceback"]
    assert "sandyard_runtime" not in end.stderr.decode()


def test_an_exit_with_a_text_prints_it(runner: Runner) -> None:
    end = runner.run("import sys; sys.exit('the text')")
    assert (end.stderr, end.exited["exitCode"]) == (b"the text\n", 1)
    assert "errorType" not in end.exited


def test_a_hook_of_the_scripts_own_is_called(runner: Runner) -> None:
    end = runner.run("import sys\nsys.excepthook = lambda t, e, tb: print('mine', t.__name__)\nraise KeyError(1)")
    assert (end.text, end.stderr, end.exited["errorType"]) == ("mine KeyError\n", b"", "KeyError")


HOSTILE = {
    "a text that raises": "class E(Exception):\n    def __str__(self): raise ValueError\nraise E",
    "a text of 10 MB": "raise ValueError('x' * 10_000_000)",
    "half a surrogate": "raise ValueError('\\ud800')",
    "a text of emoji": "raise ValueError('\\U0001f4a9' * 100_000)",
    "control characters": "raise ValueError('\\0\\x1b[31m' * 10_000)",
    "a name of 100 KB": "raise type('E' * 100_000, (Exception,), {})('x')",
    "a deep chain": "e = None\nfor i in range(300):\n    n = ValueError(i); n.__cause__ = e; e = n\nraise e",
    "deep recursion": "def f(): f()\nf()",
    "no memory": "raise MemoryError",
    "a broken stderr": "import sys\nsys.stderr = None\nraise ValueError('x')",
    "patched modules": "import json, os, traceback\n"
    "json.dumps = os.write = traceback.format_exception = None\nraise ValueError",
    "a class that lies": "class M(type):\n    @property\n    def __name__(cls): raise ValueError\n"
    "class E(Exception, metaclass=M): pass\nraise E",
    "a hook that exits": "import os, sys\nsys.excepthook = lambda *a: os._exit(1)\nraise ValueError",
    "an exception group": "raise ExceptionGroup('g', [ValueError(i) for i in range(100)])",
    "a closed report": "import os\nos.close(3)\nraise ValueError",
    "a flooded report": "import os\nos.write(3, b'[' * 60_000)\nraise ValueError",
    "another's report": 'import os\nos.write(3, b\'{"errorType": [1], "traceback": {}, "exitCode": 0}\')\nos._exit(1)',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_an_exception_that_lies_about_itself_is_an_exit_code_all_the_same(runner: Runner, name: str) -> None:
    end = runner.run(HOSTILE[name])
    assert (end.outcome, end.exited["exitCode"]) == ("exited", 1)
    for key, bound in (("errorType", 200), ("errorMessage", 1024), ("traceback", 4096)):
        assert len(str(end.exited.get(key, "")).encode()) <= bound


def test_a_long_message_keeps_its_head_and_a_long_traceback_its_tail(runner: Runner) -> None:
    end = runner.run("raise ValueError('first' + 'x' * 10_000 + 'last')")
    assert end.exited["errorMessage"].startswith("firstx")
    assert end.exited["traceback"].endswith("xlast\n")


def test_a_null_byte_in_a_script_is_a_syntax_error(runner: Runner) -> None:
    end = runner.run(b"print(1)\n\0")
    assert (end.exited["errorType"], end.exited["exitCode"]) == ("SyntaxError", 1)
