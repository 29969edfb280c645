"""Four run, ten wait, the fifteenth is told at once; order is by age."""

from harness.tenant import Tenant, eventually

SLEEPER = "import time; print(time.time()); time.sleep({seconds})"


def test_of_six_tasks_four_run(fresh_tenant: Tenant) -> None:
    names = [fresh_tenant.task(SLEEPER.format(seconds=12), name=f"q{i}") for i in range(6)]

    def phases() -> list[str]:
        return [fresh_tenant.get(name).get("status", {}).get("phase", "") for name in names]

    seen = eventually(phases, lambda seen: seen.count("Running") == 4 and seen.count("Queued") == 2, seconds=60)
    assert seen[4:] == ["Queued", "Queued"]
    ends = [fresh_tenant.finished(name) for name in names]
    assert {end["reason"] for end in ends} == {"Succeeded"}


def test_of_fifteen_the_fifteenth_is_refused_at_once(fresh_tenant: Tenant) -> None:
    names = [fresh_tenant.task(SLEEPER.format(seconds=25), name=f"q{i:02d}") for i in range(15)]
    status = fresh_tenant.finished(names[14], seconds=20)
    assert status["reason"] == "QueueFull"
    reasons = [fresh_tenant.get(name).get("status", {}).get("reason", "") for name in names[:14]]
    assert "QueueFull" not in reasons
    for name in names:
        fresh_tenant.kubectl("delete", "sbt", name, "--wait=false")


def test_a_task_that_waits_too_long_ends_queue_timeout(fresh_tenant: Tenant) -> None:
    for i in range(4):
        fresh_tenant.task(SLEEPER.format(seconds=30), name=f"q{i}")
    late = fresh_tenant.task("print('never')", queueTimeoutSeconds=2)
    status = fresh_tenant.finished(late, seconds=30)
    assert status["reason"] == "QueueTimeout"
    assert "run" not in status
