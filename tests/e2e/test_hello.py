"""The first task of the README, as its reader types it."""

from pathlib import Path

from harness.tenant import Tenant, eventually

EXAMPLES = Path(__file__).parents[2] / "examples" / "tasks"


def test_hello_runs_as_the_readme_says(fresh_tenant: Tenant) -> None:
    fresh_tenant.kubectl("create", "-f", str(EXAMPLES / "hello.yaml"))
    fresh_tenant.kubectl("wait", "--for=condition=Finished", "sbt/hello", "--timeout=60s")
    text = fresh_tenant.kubectl("get", "sbt", "hello", "-o", "jsonpath={.status.result.stdout.text}").stdout
    assert text.startswith("hello from Python 3.13")


def test_a_finished_task_tells_everything_about_itself(tenant: Tenant) -> None:
    status = tenant.run("import sys; print('out'); print('err', file=sys.stderr)")
    assert status["phase"] == "Succeeded"
    assert status["reason"] == "Succeeded"
    assert status["result"]["exitCode"] == 0
    assert status["result"]["stdout"]["text"] == "out\n"
    assert status["result"]["stderr"]["text"] == "err\n"
    assert status["result"]["stdout"]["bytes"] == 4
    assert status["result"]["stdout"].get("truncated", False) is False
    assert {c["type"]: c["status"] for c in status["conditions"]} | {
        "Finished": "True",
        "Succeeded": "True",
    } == {c["type"]: c["status"] for c in status["conditions"]}
    assert status["observedGeneration"] == 1
    assert status["run"]["podUID"]
    assert status["run"]["runID"]
    assert status["isolation"]["seccomp"] is True
    assert status["timings"]["totalMilliseconds"] >= status["timings"]["runMilliseconds"]
    assert "@sha256:" in status["image"]


def test_the_pod_is_gone_after_the_end(fresh_tenant: Tenant) -> None:
    fresh_tenant.run("print(1)")
    eventually(fresh_tenant.pods, lambda pods: pods == [], seconds=30)


def test_columns_are_what_the_contract_names(tenant: Tenant) -> None:
    name = tenant.task("print(1)")
    tenant.finished(name)
    header, row = tenant.kubectl("get", "sbt", name, "-o", "wide").stdout.splitlines()
    assert header.split() == ["NAME", "PHASE", "REASON", "EXIT", "WARM", "CLASS", "RUN", "AGE"]
    assert row.split()[:4] == [name, "Succeeded", "Succeeded", "0"]


def test_describe_shows_events_without_a_users_text(tenant: Tenant) -> None:
    name = tenant.task("print('a line of the user')")
    tenant.finished(name)
    described = eventually(
        lambda: tenant.kubectl("describe", "sbt", name).stdout,
        lambda text: "Events:" in text and "Succeeded" in text,
    )
    assert "a line of the user" not in described.split("Events:")[1]


def test_tasks_are_selected_by_phase(fresh_tenant: Tenant) -> None:
    good = fresh_tenant.task("print(1)")
    bad = fresh_tenant.task("raise SystemExit(3)")
    fresh_tenant.finished(good)
    fresh_tenant.finished(bad)
    listed = fresh_tenant.kubectl("get", "sbt", "--field-selector=status.phase=Failed", "-o", "name").stdout
    assert listed.split() == [f"sandboxtask.sandyard.dev/{bad}"]
