"""Measure a cold task beside a plain Job and a bare Pod on the same cluster, interleaved in one run.

``make bench`` runs it and writes bench/results.json and bench/results.md. All three run the same line of
Python in the same image; the Job and the Pod start the interpreter themselves. Figures are ratios of one run;
absolute times of noisy machines mean little.
"""

import argparse
import json
import platform
import statistics
import sys
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from harness.api import Api, has_condition

SAMPLES: Final = 30
LINE: Final = "print(6 * 7)"
TASKS: Final = "/apis/sandyard.dev/v1alpha1/namespaces/{}/sandboxtasks"
JOBS: Final = "/apis/batch/v1/namespaces/{}/jobs"
PODS: Final = "/api/v1/namespaces/{}/pods"
BAR: Final = 0.4  # of a Job, for a cold task without dependencies


def task(api: Api, namespace: str, _image: str) -> None:
    """Create a SandboxTask and wait until it is finished."""
    body = {"apiVersion": "sandyard.dev/v1alpha1", "kind": "SandboxTask", "spec": {"code": LINE}}
    done = api.create_and_watch(TASKS.format(namespace), named(body), lambda seen: has_condition(seen, "Finished"))
    if done["status"]["reason"] != "Succeeded":
        raise AssertionError(done["status"])


def job(api: Api, namespace: str, image: str) -> None:
    """Create a Job and wait until it is complete."""
    spec = {"backoffLimit": 0, "template": {"spec": pod_spec(image)}}
    body = {"apiVersion": "batch/v1", "kind": "Job", "spec": spec}
    api.create_and_watch(JOBS.format(namespace), named(body), lambda seen: has_condition(seen, "Complete"))


def pod(api: Api, namespace: str, image: str) -> None:
    """Create a bare Pod and wait until it is seen to have succeeded."""
    body = {"apiVersion": "v1", "kind": "Pod", "spec": pod_spec(image)}

    def succeeded(seen: dict[str, Any]) -> bool:
        return bool(seen.get("status", {}).get("phase") == "Succeeded")

    api.create_and_watch(PODS.format(namespace), named(body), succeeded)


def pod_spec(image: str) -> dict[str, Any]:
    """Return the spec that Job and Pod share."""
    command = ["/usr/bin/python3.13", "-c", LINE]
    return {"restartPolicy": "Never", "containers": [{"name": "c", "image": image, "command": command}]}


def named(body: dict[str, Any]) -> dict[str, Any]:
    """Give a manifest a name of its own."""
    return body | {"metadata": {"name": f"bench-{uuid.uuid4().hex[:10]}"}}


RUNNERS: Final[dict[str, Callable[[Api, str, str], None]]] = {"task": task, "job": job, "pod": pod}


def measure(api: Api, *, samples: int) -> dict[str, list[float]]:
    """Run the three in turn, each once per round, after one round that is not counted."""
    namespace = f"bench-{uuid.uuid4().hex[:8]}"
    image = api.call("GET", "/apis/sandyard.dev/v1alpha1/sandboxclasses/default")["spec"]["image"]
    api.call(
        "POST",
        "/api/v1/namespaces",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
    )
    seconds: dict[str, list[float]] = {name: [] for name in RUNNERS}
    try:
        for turn in range(samples + 1):
            for name, runner in RUNNERS.items():
                started = time.monotonic()
                runner(api, namespace, image)
                if turn:
                    seconds[name].append(time.monotonic() - started)
            print(f"round {turn} of {samples}: " + ", ".join(f"{n} {s[-1]:.2f} s" for n, s in seconds.items() if s))
    finally:
        api.call("DELETE", f"/api/v1/namespaces/{namespace}")
    return seconds


def summary(seconds: dict[str, list[float]]) -> dict[str, Any]:
    """Return medians, 95th percentiles and the ratios to Job and Pod."""
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    high = {name: statistics.quantiles(values, n=20)[-1] for name, values in seconds.items()}
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "samples": len(seconds["task"]),
        "p50_seconds": medians,
        "p95_seconds": high,
        "ratio_to_job": {
            "p50": medians["task"] / medians["job"],
            "p95": high["task"] / high["job"],
            "bar": BAR,
        },
        "ratio_to_pod": {"p50": medians["task"] / medians["pod"], "p95": high["task"] / high["pod"]},
        "seconds": seconds,
    }


def markdown(found: dict[str, Any]) -> str:
    """Return the summary as a table."""
    rows = ["| what | p50 | p95 |", "|---|---|---|"]
    names = {"task": "cold task, no dependencies", "job": "plain Job", "pod": "bare Pod"}
    rows += [f"| {names[n]} | {found['p50_seconds'][n]:.2f} s | {found['p95_seconds'][n]:.2f} s |" for n in names]
    for key, other in (("ratio_to_job", "Job"), ("ratio_to_pod", "Pod")):
        rows.append(f"| task ÷ {other} | {found[key]['p50']:.2f} | {found[key]['p95']:.2f} |")
    lines = [
        *rows,
        "",
        f"{found['samples']} interleaved rounds, kernel {found['kernel']}, {found['date']}; `make bench`.",
    ]
    return "\n".join([*lines, ""])


def main() -> None:
    """Measure, write the results, and fail when the ratio is above its bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--into", type=Path, default=Path("bench"))
    options = parser.parse_args()
    with Api() as api:
        found = summary(measure(api, samples=options.samples))
    options.into.mkdir(parents=True, exist_ok=True)
    (options.into / "results.json").write_text(json.dumps(found, indent=2) + "\n")
    (options.into / "results.md").write_text(markdown(found))
    print(markdown(found))
    if found["ratio_to_job"]["p50"] > BAR:
        sys.exit(f"a cold task takes {found['ratio_to_job']['p50']:.2f} of a Job; the bar is {BAR}")


if __name__ == "__main__":
    main()
