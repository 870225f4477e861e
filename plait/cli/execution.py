"""Run a script and show it: what `plait run` and `plait demo` have in common."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plait.cli.interrupt import StopOnSignal
from plait.cli.output import Output, RunInfo
from plait.errors import OptionError

if TYPE_CHECKING:
    from plait.runtime.engine import RunHandle
    from plait.runtime.events import Summary
    from plait.sql import Script

DEFAULT_STRATEGY = "greedy"
DEFAULT_TRIGGER = "1 second"
_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """How to run a script. `trigger` None: only what is there now. `conf`: Spark settings."""

    script: Script
    file: Path
    checkpoint: str
    strategy: str
    trigger: str | None
    master: str | None
    conf: tuple[tuple[str, str], ...]


def settle(
    script: Script,
    file: Path,
    *,
    checkpoint: str | None = None,
    strategy: str | None = None,
    available_now: bool = False,
    trigger: str | None = None,
    master: str | None = None,
    conf: tuple[str, ...] = (),
) -> Execution:
    """Combine the script's SET options with the command line, which wins."""
    said = {option.name: option.value for option in script.options}
    spark = {name: value for name, value in said.items() if name.startswith("spark.")}
    chosen_trigger = trigger or said.get("plait.trigger", DEFAULT_TRIGGER)
    return Execution(
        script=without_options(script, {*spark, "plait.trigger", "plait.strategy"}),
        file=file,
        checkpoint=checkpoint or default_checkpoint(file),
        strategy=strategy or said.get("plait.strategy", DEFAULT_STRATEGY),
        trigger=None if available_now else chosen_trigger,
        master=master or spark.pop("spark.master", None),
        conf=tuple({**spark, **dict(read_setting(text) for text in conf)}.items()),
    )


def default_checkpoint(file: Path) -> str:
    """Return where a script's checkpoint is unless the user says otherwise: beside it."""
    return str(file.with_name(f"{file.stem}.checkpoint"))


def read_setting(text: str) -> tuple[str, str]:
    """Read ``key=value``."""
    name, found, value = text.partition("=")
    if not found or not name.strip():
        raise OptionError(f"--conf '{text}' is not a setting; expected key=value, such as spark.executor.memory=4g")
    return name.strip(), value.strip()


def without_options(script: Script, names: set[str]) -> Script:
    """Return the script without these SET options, because somebody else applies them."""
    return replace(script, options=tuple(option for option in script.options if option.name not in names))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a run. `plan`: the plan at its end, as `plait explain --format json` prints it."""

    summary: Summary
    plan: dict[str, Any]


def execute(execution: Execution, output: Output) -> Outcome:
    """Run the script to its end, or to the first Ctrl-C, and show it. Raises what ended the run, if it failed."""
    # Imported here because Spark takes seconds to load, which `plait check` and `plait explain` must not wait for.
    from plait.runtime.engine import Engine
    from plait.runtime.session import open_session

    spark = open_session(execution.master, dict(execution.conf))
    try:
        with StopOnSignal(output.stopping) as stop:
            engine = Engine(spark, checkpoint=execution.checkpoint, strategy=execution.strategy, listener=output.batch)
            engine.load(execution.script)
            output.starting(describe(execution))
            summary = _wait(engine.start(execution.trigger), stop)
        output.finished(summary)
        return Outcome(summary=summary, plan=json.loads(engine.explain("json")))
    finally:
        spark.stop()


def describe(execution: Execution) -> RunInfo:
    """Return what the reader is told before the first batch."""
    return RunInfo(
        script=str(execution.file),
        strategy=execution.strategy,
        checkpoint=execution.checkpoint,
        queries=tuple(query.name for query in execution.script.queries),
    )


def _wait(handle: RunHandle, stop: StopOnSignal) -> Summary:
    while not stop.requested.is_set() and not handle.await_termination(_POLL_SECONDS):
        pass
    return handle.stop()
