"""``make demo``: everything up, then the examples one after another with a live view of each.

Ends with a table of what came out, whether it was expected, and how long it took; exits 1 where it was not.
"""

import json
import os
import subprocess
import time
from dataclasses import dataclass
from typing import Any, Final

from rich.live import Live
from rich.table import Table
from rich.text import Text

from yard.bring_up import bring_up, environment
from yard.steps import ROOT, StepError, Steps, main

NAMESPACE: Final = "sandyard-demo"
ROW_CHARACTERS: Final = 48  # of what came out, in the table at the end
EXAMPLE_SECONDS: Final = 240  # the longest an example may take, a cold install included


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """An example file and what must come out of it."""

    name: str
    about: str
    reason: str
    shows: str  # a piece of the output, of the message or of an artifact's path


EXAMPLES: Final = (
    Example(name="hello", about="no dependency", reason="Succeeded", shows="hello from Python"),
    Example(
        name="json-in-out",
        about="a package from the index, JSON in and out",
        reason="Succeeded",
        shows='{"counts": {"sand": 2, "yard": 1}, "six": "1.17.0"}',
    ),
    Example(name="pandas-duckdb", about="pandas and duckdb", reason="Succeeded", shows="Oslo    165"),
    Example(name="plot", about="a file in, a plot out", reason="Succeeded", shows="temperatures.png"),
    Example(name="install-fails", about="a failing install", reason="DependencyNotFound", shows="no-such-package"),
    Example(name="timeout", about="a timeout", reason="RunTimeout", shows="counting sheep"),
    Example(name="refused", about="a refused script", reason="InvalidDependency", shows="tool @"),
)


def demo(steps: Steps) -> None:
    """Bring everything up and run the examples."""
    bring_up(steps)
    kubectl("create", "namespace", NAMESPACE, check=False)
    outcomes = []
    for example in EXAMPLES:
        with steps.step(f"example {example.name}: {example.about}"):
            outcomes.append((example, run_example(example, steps)))
    steps.console.print(result_table(outcomes))
    failed = [example.name for example, status in outcomes if not as_expected(example, status)]
    if failed:
        raise StepError(f"not as expected: {', '.join(failed)}. Look closer: kubectl -n {NAMESPACE} describe sbt")
    steps.console.print(f"Every example came out as expected. They stay in the namespace {NAMESPACE}:")
    steps.console.print(f"  export KUBECONFIG={environment()['KUBECONFIG']}; kubectl -n {NAMESPACE} get sbt")


def run_example(example: Example, steps: Steps) -> dict[str, Any]:
    """Create one example anew and follow it to its end."""
    path = ROOT / "examples" / "tasks" / f"{example.name}.yaml"
    kubectl("delete", "-f", str(path), "--ignore-not-found")
    kubectl("create", "-f", str(path))
    started = time.monotonic()
    with Live(console=steps.console, refresh_per_second=8, transient=True) as live:
        for status in follow(example.name):
            live.update(Text(f"    {status.get('phase', 'Created'):<11} {time.monotonic() - started:5.1f} s"))
            if status.get("completionTime"):
                break
    steps.console.print(f"    {status.get('reason')}: {shown(status)}", markup=False)
    return status


def follow(name: str) -> Any:
    """Yield each status of a task as the API server tells it, to its end."""
    deadline = time.monotonic() + EXAMPLE_SECONDS
    argv = [
        "kubectl",
        "-n",
        NAMESPACE,
        "get",
        "sbt",
        name,
        "-o",
        "json",
        "--watch",
        f"--request-timeout={EXAMPLE_SECONDS}",
    ]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment()}) as watch:
        decoder, text = json.JSONDecoder(), ""
        try:
            for line in watch.stdout or ():
                text += line
                if line != "}\n":
                    continue
                document, _ = decoder.raw_decode(text)
                text = ""
                yield document.get("status", {})
                if time.monotonic() > deadline:
                    break
        finally:
            watch.terminate()
    raise StepError(
        f"example {name} did not end in {EXAMPLE_SECONDS} s; look: kubectl -n {NAMESPACE} describe sbt {name}"
    )


def shown(status: dict[str, Any]) -> str:
    """Return in one text what came out of a task."""
    result = status.get("result", {})
    parts = [result.get("stdout", {}).get("text", "").strip()]
    parts += [f"{a['path']} ({a['bytes']} bytes, {a['mediaType']})" for a in result.get("artifacts", [])]
    if status.get("reason") != "Succeeded":
        parts.append(status.get("message", ""))
    return "\n    ".join(part for part in parts if part)


def first_line(text: str) -> str:
    """Shorten a text to what fits into a row."""
    line = text.split("\n", 1)[0]
    return line if len(line) <= ROW_CHARACTERS else f"{line[: ROW_CHARACTERS - 1]}…"


def as_expected(example: Example, status: dict[str, Any]) -> bool:
    """Compare an end with what its example promises."""
    return status.get("reason") == example.reason and example.shows in shown(status)


def result_table(outcomes: list[tuple[Example, dict[str, Any]]]) -> Table:
    """Draw what came out of each example and how long it took."""
    table = Table(title="Examples")
    for heading in ("example", "reason", "what came out", "install", "run", "all", "expected"):
        table.add_column(heading)
    for example, status in outcomes:
        timings = status.get("timings", {})
        seconds = [f"{timings.get(f'{part}Milliseconds', 0) / 1000:.2f} s" for part in ("install", "run", "total")]
        mark = "yes" if as_expected(example, status) else "NO"
        table.add_row(example.name, status.get("reason"), Text(first_line(shown(status))), *seconds, mark)
    return table


def kubectl(*args: str, check: bool = True) -> str:
    """Run kubectl in the demo's namespace."""
    done = subprocess.run(
        ["kubectl", "-n", NAMESPACE, *args],
        text=True,
        capture_output=True,
        check=False,
        env={**os.environ, **environment()},
    )
    if check and done.returncode != 0:
        raise StepError(f"kubectl {' '.join(args)}: {done.stderr.strip()}")
    return done.stdout


if __name__ == "__main__":
    main(demo)
