"""Run a task in a fresh process, so that no system finds the caches, the heap or the compiled code of another."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import plait
from benchmarks.measure import Use, watching
from benchmarks.systems.known import Choice, system
from benchmarks.systems.summing import added_up
from benchmarks.systems.task import Outcome, Task
from plait.errors import PlaitError

_SHOWN_LINES = 15
_PEERS = "PLAIT_PEERS"
_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A task that was carried out."""

    task: Task
    outcome: Outcome
    use: Use | None


class SystemFailedError(PlaitError):
    """A system ended without an outcome. `system` and `end` say which and how, `output` what it wrote."""

    def __init__(self, system: str, end: str, output: str) -> None:
        self.system, self.end, self.output = system, end, output
        tail = "\n".join(output.strip().splitlines()[-_SHOWN_LINES:])
        super().__init__(f"the run of '{system}' ended {end}, without an outcome:\n{tail}")


class NotPreparedError(PlaitError):
    """A peer's environment is missing. `environment` says which."""

    def __init__(self, environment: str, path: Path) -> None:
        self.environment = environment
        super().__init__(
            f"the environment of '{environment}' is not prepared: run `make peers` (expected {path}; "
            f"the variable {_PEERS} names another directory of environments)"
        )


Beside = Callable[[Task], AbstractContextManager[None]]


def run_fresh(task: Task, *, timeout_s: float | None = None, beside: Beside | None = None) -> Run:
    """Carry out the task in a process of its own, watching what it uses. `beside`: what goes on meanwhile. Raises
    SystemFailedError, and NotPreparedError where its environment is missing.
    """
    Path(task.scratch).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="run-", dir=task.scratch, ignore_cleanup_errors=True) as scratch:
        started = replace(task, scratch=scratch, created_s=time.time())
        python = interpreter(system(task.system).environment)
        with nullcontext() if beside is None else beside(started):
            text, use = launch(
                "benchmarks.systems", task.system, started.as_json(), Path(scratch), timeout_s=timeout_s, python=python
            )
        outcome = Outcome.from_json(text)
        if task.check and outcome.checksum is None and started.results.is_dir():
            outcome = replace(outcome, answers=added_up(started))
    return Run(task=task, outcome=outcome, use=use)


def launched(task: Task, *, environment: str | None = None, timeout_s: float | None = None) -> Outcome:
    """Carry out a task, whose `scratch` is there, in a process of its own, by a system that is no choice of its own."""
    python = interpreter(environment)
    text, _ = launch(
        "benchmarks.systems", task.system, task.as_json(), Path(task.scratch), timeout_s=timeout_s, python=python
    )
    return Outcome.from_json(text)


def interpreter(environment: str | None) -> str:
    """Return the interpreter of an environment that ``make peers`` prepared, by default beside the benchmarks; this
    one's for None. Raises NotPreparedError.
    """
    if environment is None:
        return sys.executable
    found = Path(os.environ.get(_PEERS) or _ROOT / ".peers") / environment / "bin" / "python"
    if not found.exists():
        raise NotPreparedError(environment, found)
    return str(found)


def peer_versions(choices: Iterable[Choice]) -> dict[str, str]:
    """Return the versions of the packages that peers are, as their environments have them; none of what is missing."""
    found = {}
    for each in {choice.system.name: choice.system for choice in choices}.values():
        if each.package is None:
            continue
        asked = f"from importlib.metadata import version; print(version('{each.package}'))"
        try:
            python = interpreter(each.environment)
            done = subprocess.run([python, "-c", asked], capture_output=True, text=True, timeout=60, check=True)
        except (NotPreparedError, OSError, subprocess.SubprocessError):
            continue
        found[each.package] = done.stdout.strip()
    return found


def launch(
    module: str,
    name: str,
    task: str,
    scratch: Path,
    *,
    timeout_s: float | None = None,
    python: str = sys.executable,
) -> tuple[str, Use | None]:
    """Run ``python -m module TASK OUTCOME``, two files, and return what it wrote into the second, and what it used.

    Raises SystemFailedError, also after `timeout_s`.
    """
    before = _ended_cpu_seconds()
    source, target = scratch / "task.json", scratch / "outcome.json"
    source.write_text(task)
    with (scratch / "output.txt").open("w+") as output:
        process = subprocess.Popen(
            [python, "-m", module, str(source), str(target)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=_environment(python),
        )
        with _ending_with_us(process), watching(process.pid) as watch:
            status = _wait(process, timeout_s)
        output.seek(0)
        text = output.read()
    if status is None:
        raise SystemFailedError(name, f"because it took longer than {timeout_s:g} seconds", text)
    if status != 0 or not target.exists():
        raise SystemFailedError(name, f"with status {status}", text)
    use = watch.take()
    return target.read_text(), use and replace(use, ended_cpu_seconds=_ended_cpu_seconds() - before)


def _ended_cpu_seconds() -> float:
    """Return the processor time of all children that have ended, with theirs."""
    found = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found.ru_utime + found.ru_stime


def _wait(process: subprocess.Popen[bytes], timeout_s: float | None) -> int | None:
    """Return the exit status; None if the process had to be ended."""
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return None


@contextmanager
def _ending_with_us(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """End the child if this process is interrupted or told to end: else it goes on for minutes, unheard."""

    def leave(number: int, frame: object) -> None:
        sys.exit(128 + number)

    in_main_thread = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, leave) if in_main_thread else None
    try:
        yield
    finally:
        if in_main_thread:
            signal.signal(signal.SIGTERM, before)
        if process.poll() is None:
            process.terminate()
            process.wait()


def _environment(python: str) -> dict[str, str]:
    """Return this process's environment; the child and its workers find these benchmarks in it, and this very Plait."""
    plait_root = Path(plait.__file__).resolve().parents[1]
    paths = [str(_ROOT), str(plait_root), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)), "PYSPARK_PYTHON": python}
