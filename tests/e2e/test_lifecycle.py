"""Cancel, delete and time to live, in each state a task can be in."""

from harness.tenant import Tenant, eventually, task_manifest

LONG = "import time; print('started', flush=True); time.sleep(300)"


def phase_is(tenant: Tenant, name: str, phase: str) -> None:
    """Wait until a task is in a phase."""
    eventually(lambda: tenant.get(name).get("status", {}).get("phase"), lambda seen: seen == phase, seconds=60)


def test_a_task_created_cancelled_never_runs(fresh_tenant: Tenant) -> None:
    status = fresh_tenant.run("print(1)", cancel=True)
    assert (status["phase"], status["reason"]) == ("Cancelled", "Cancelled")
    assert "run" not in status
    assert fresh_tenant.pods() == []


def test_cancelling_a_running_task_keeps_its_output(fresh_tenant: Tenant) -> None:
    name = fresh_tenant.task(LONG)
    phase_is(fresh_tenant, name, "Running")
    fresh_tenant.kubectl("patch", "sbt", name, "--type=merge", "-p", '{"spec":{"cancel":true}}')
    status = fresh_tenant.finished(name, seconds=30)
    assert status["phase"] == "Cancelled"
    assert status["result"]["stdout"]["text"] == "started\n"
    eventually(fresh_tenant.pods, lambda pods: pods == [], seconds=30)


def test_a_cancel_cannot_be_taken_back(fresh_tenant: Tenant) -> None:
    name = fresh_tenant.task("print(1)", cancel=True)
    refused = fresh_tenant.kubectl("patch", "sbt", name, "--type=merge", "-p", '{"spec":{"cancel":false}}', check=False)
    assert refused.returncode != 0
    assert "cancel" in refused.stderr


def test_deleting_a_running_task_removes_its_pod(fresh_tenant: Tenant) -> None:
    name = fresh_tenant.task(LONG)
    phase_is(fresh_tenant, name, "Running")
    fresh_tenant.kubectl("delete", "sbt", name, "--timeout=30s")
    eventually(fresh_tenant.pods, lambda pods: pods == [], seconds=60)


def test_a_deleted_queued_task_frees_its_place(fresh_tenant: Tenant) -> None:
    running = [fresh_tenant.task(LONG, name=f"r{i}") for i in range(4)]
    for name in running:
        phase_is(fresh_tenant, name, "Running")
    queued = fresh_tenant.task("print('second')")
    last = fresh_tenant.task("print('third')")
    phase_is(fresh_tenant, queued, "Queued")
    fresh_tenant.kubectl("delete", "sbt", queued)
    fresh_tenant.kubectl("delete", "sbt", running[0])
    assert fresh_tenant.finished(last, seconds=60)["reason"] == "Succeeded"
    for name in running[1:]:
        fresh_tenant.kubectl("delete", "sbt", name, "--wait=false")


def test_a_finished_task_goes_after_its_time_to_live(fresh_tenant: Tenant) -> None:
    name = fresh_tenant.task("print(1)", ttlSecondsAfterFinished=3)
    fresh_tenant.finished(name)
    eventually(
        lambda: fresh_tenant.kubectl("get", "sbt", name, check=False).returncode,
        lambda code: code != 0,
        seconds=30,
    )


def test_a_pod_deleted_by_somebody_is_told_and_never_run_again(fresh_tenant: Tenant) -> None:
    name = fresh_tenant.task(LONG)
    phase_is(fresh_tenant, name, "Running")
    pod = fresh_tenant.get(name)["status"]["run"]["podName"]
    fresh_tenant.kubectl("delete", "pod", pod, "--grace-period=0", "--force")
    status = fresh_tenant.finished(name, seconds=60)
    assert status["reason"] == "PodDeleted"
    assert "may have run" in status["message"]
    eventually(fresh_tenant.pods, lambda pods: pods == [], seconds=60)


def test_the_spec_is_immutable(tenant: Tenant) -> None:
    name = tenant.task("print(1)")
    refused = tenant.kubectl("patch", "sbt", name, "--type=merge", "-p", '{"spec":{"code":"print(2)"}}', check=False)
    assert "may not change" in refused.stderr


def test_an_unknown_field_is_refused(tenant: Tenant) -> None:
    refused = tenant.create(task_manifest("unknown", "print(1)", colour="blue"), check=False)
    assert "colour" in refused.stderr
