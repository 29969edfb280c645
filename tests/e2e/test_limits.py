"""Each bound at its value and one above: refused by the API server, or ended in its reason without a pod."""

import json

import pytest

from harness.tenant import Tenant, task_manifest

CODE_BYTES = 262_144
STDIN_BYTES = 128 * 1024


def padded(size: int, filler: str = "x") -> str:
    """Return a script of exactly this many bytes that prints its own length in bytes."""
    head = "import sys; print(len(open(sys.argv[0], 'rb').read()))\n# "
    count, rest = divmod(size - len(head), len(filler.encode()))
    return head + "x" * rest + filler * count


@pytest.mark.parametrize("filler", ["x", "\N{GRINNING FACE}"], ids=["ascii", "4-byte characters"])
def test_the_largest_script_runs(tenant: Tenant, filler: str) -> None:
    status = tenant.run(padded(CODE_BYTES, filler))
    assert status["reason"] == "Succeeded"
    assert status["result"]["stdout"]["text"] == f"{CODE_BYTES}\n"


@pytest.mark.parametrize("filler", ["x", "\N{GRINNING FACE}"], ids=["ascii", "4-byte characters"])
def test_one_byte_more_is_refused_by_the_api_server(tenant: Tenant, filler: str) -> None:
    refused = tenant.create(task_manifest("large", padded(CODE_BYTES + 1, filler)), check=False)
    assert refused.returncode != 0
    assert "spec.code" in refused.stderr


def test_one_byte_more_through_a_config_map_ends_without_a_pod(fresh_tenant: Tenant) -> None:
    name = fresh_tenant.config_map({"main.py": padded(CODE_BYTES + 1)})
    status = fresh_tenant.run(codeFrom={"configMapKeyRef": {"name": name, "key": "main.py"}})
    assert status["reason"] == "LimitExceeded"
    assert str(CODE_BYTES) in status["message"]
    assert "run" not in status
    assert fresh_tenant.pods() == []


def test_the_largest_inline_stdin_is_accepted_and_one_more_refused(tenant: Tenant) -> None:
    script = "import sys; print(len(sys.stdin.buffer.read()))"
    assert tenant.run(script, stdin="x" * STDIN_BYTES)["result"]["stdout"]["text"] == f"{STDIN_BYTES}\n"
    refused = tenant.create(task_manifest("stdin", script, stdin="x" * (STDIN_BYTES + 1)), check=False)
    assert "spec.stdin" in refused.stderr


def test_twenty_dependencies_are_accepted_and_twenty_one_end_without_a_pod(fresh_tenant: Tenant) -> None:
    def script(count: int) -> str:
        listed = json.dumps(["numpy"] * count)
        return f"# /// script\n# dependencies = {listed}\n# ///\nprint('ran')\n"

    assert fresh_tenant.run(script(20))["reason"] == "Succeeded"
    assert fresh_tenant.run(script(21))["reason"] == "LimitExceeded"


@pytest.mark.parametrize(
    ("stream", "cap"), [("stdout", 1 << 20), ("stderr", 256 << 10)], ids=["stdout 1 MiB", "stderr 256 KiB"]
)
def test_a_stream_is_whole_at_its_cap_and_truncated_one_above(tenant: Tenant, stream: str, cap: int) -> None:
    for extra, truncated in ((0, False), (1, True)):
        status = tenant.run(f"import sys; sys.{stream}.write('y' * {cap + extra})")
        assert status["result"][stream]["bytes"] == cap + extra
        assert status["result"][stream].get("truncated", False) is truncated


def test_the_open_files_limit_is_in_force(tenant: Tenant) -> None:
    code = (
        "files = []\n"
        "try:\n"
        "    while True: files.append(open('/dev/null'))\n"
        "except OSError as error:\n"
        "    print(error.errno, 4000 < len(files) <= 4096)\n"
    )
    assert tenant.run(code)["result"]["stdout"]["text"] == "24 True\n"
