"""Run a script and show it: what `plait run` and `plait demo` have in common, Ctrl-C included."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plait.cli.opened_session import opened_session
from plait.cli.output import Output, RunInfo
from plait.cli.script import ScriptText
from plait.cli.serving import ListenChoices, opened_service, service_rules
from plait.cli.stopping import StopOnSignal
from plait.cli.watching import Watch
from plait.errors import OptionError
from plait.plan.strategy_names import DEFAULT_STRATEGY, StrategyName, strategy_name
from plait.sql.expressions.scope import SchemaUnknownError
from plait.sql.script.set_options import SERVICE_OPTIONS, checked_option
from plait.state.ended import refuse_finished
from plait.state.sole_run import sole_run

if TYPE_CHECKING:
    from plait.runtime.batch.events import Summary
    from plait.runtime.engine import Engine, RunHandle
    from plait.server.service import Rules
    from plait.sql import Script

DEFAULT_TRIGGER = "1 second"
_STRATEGY, _TRIGGER = "plait.strategy", "plait.trigger"
_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """How to run a script. `trigger` None: only what is there now, and nothing will come after that if it `closes`.
    `conf`: Spark settings, `settings`: Plait's; `retry`: the queries that are tried again though they are set aside;
    `rules`: of the service, None without one; `watches`: apply the script whenever it is saved.
    """

    script: ScriptText
    checkpoint: str
    trigger: str | None
    master: str | None
    conf: tuple[tuple[str, str], ...]
    settings: tuple[tuple[str, str], ...]
    closes: bool = False
    retry: tuple[str, ...] = ()
    rules: Rules | None = None
    watches: bool = False

    @property
    def strategy(self) -> StrategyName:
        """The strategy's name."""
        return strategy_name(dict(self.settings)[_STRATEGY])


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What the command line says; None and empty where it is silent. `conf`: texts like ``key=value``."""

    checkpoint: str | None = None
    strategy: str | None = None
    trigger: str | None = None
    master: str | None = None
    conf: tuple[str, ...] = ()
    available_now: bool = False
    close: bool = False
    retry: tuple[str, ...] = ()
    listen: ListenChoices | None = None
    watch: bool = False


def settle(script: ScriptText, choices: Choices) -> Execution:
    """Combine the script's SET options with the command line, which wins. Raises OptionError for an impossible one."""
    if choices.close and not choices.available_now:
        raise OptionError(
            "--close says that nothing more will come, and a run without --available-now waits for more; write "
            "--available-now --close"
        )
    if choices.watch and choices.available_now:
        raise OptionError(
            "--watch waits for the script to be saved, and --available-now waits for nothing; leave one out"
        )
    said = {_STRATEGY: DEFAULT_STRATEGY, _TRIGGER: DEFAULT_TRIGGER, **script.settings()}
    said |= dict(checked_option(*read_setting(text)) for text in choices.conf)
    given = ((_STRATEGY, choices.strategy), (_TRIGGER, choices.trigger))
    said |= dict(checked_option(name, value) for name, value in given if value is not None)
    trigger = said.pop(_TRIGGER)
    of_service = {name: said.pop(name) for name in SERVICE_OPTIONS if name in said}
    base = str(script.file.parent)
    conf = {name: value for name, value in said.items() if name.startswith("spark.")}
    return Execution(
        script=script,
        checkpoint=choices.checkpoint or default_checkpoint(script.file),
        trigger=None if choices.available_now else trigger,
        master=choices.master or conf.get("spark.master"),
        conf=tuple(conf.items()),
        settings=tuple((name, value) for name, value in said.items() if name not in conf),
        closes=choices.close,
        retry=choices.retry,
        watches=choices.watch,
        rules=None if choices.listen is None else service_rules(choices.listen, of_service, base),
    )


def default_checkpoint(file: Path) -> str:
    """Return where a script's checkpoint is unless the user says otherwise: beside it."""
    return str(file.with_name(f"{file.stem}.checkpoint"))


def read_setting(text: str) -> tuple[str, str]:
    """Read ``key=value``."""
    name, sign, value = text.partition("=")
    if not sign or not name.strip():
        raise OptionError(f"--conf '{text}' is not a setting; expected key=value, such as spark.executor.memory=4g")
    return name.strip(), value.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a run. `is_stopped`: somebody pressed Ctrl-C. `plan` as `plait explain --format json` prints it;
    `explanation` the same as text, if that was asked for.
    """

    summary: Summary
    is_stopped: bool
    plan: dict[str, Any]
    explanation: str | None = None


def execute(execution: Execution, output: Output, *, explained: bool = False) -> Outcome:
    """Run the script to its end, or to the first Ctrl-C, and show it. Raises what ended the run, if it failed.

    `explained`: explain the plan as text when it is over.
    """
    _require_query(execution.script)
    refuse_finished(execution.checkpoint)
    formats = execution.script.formats()
    opening = opened_session(execution.master, execution.conf, output.noticed, makes_archive=True, formats=formats)
    with sole_run(execution.checkpoint), opened_service(execution.rules) as service, opening as spark:
        from plait.runtime.engine import Engine

        with StopOnSignal(output.stopping) as stop:
            engine = Engine(spark, checkpoint=execution.checkpoint, listener=output.batch)
            for name, value in execution.settings:
                engine.set_option(name, value)
            script = loaded(execution.script, engine)
            engine.load(replace(script, options=()))
            for query in execution.retry:
                engine.retry(query)
            output.starting(_described(execution, script))
            if service is not None:
                from plait.server.of_engine import ServedEngine

                service.begin(ServedEngine(engine, execution.checkpoint))
                output.noticed(f"listening on {service.url}")
            handle = engine.start(execution.trigger, close=execution.closes)
            for text in engine.notices():
                output.noticed(text)
            watch = Watch(engine, execution.script, script, loaded, output.noticed) if execution.watches else None
            summary = _wait(handle, stop, output, watch)
        if service is not None:
            service.end()  # before the engine has nobody to ask any more
        output.finished(summary)
        return Outcome(
            summary=summary,
            is_stopped=stop.requested.is_set(),
            plan=json.loads(engine.explain("json")),
            explanation=engine.explain() if explained else None,
        )


def _require_query(script: ScriptText) -> None:
    """Refuse a script that asks nothing, before Spark is started for it."""
    try:
        queries = script.load().queries
    except SchemaUnknownError:
        return
    if not queries:
        raise OptionError(f"there is no query to run in '{script.file}'; add one with CREATE QUERY")


def loaded(script: ScriptText, engine: Engine) -> Script:
    """Return what the script says; Spark is asked for columns only where local files do not tell."""
    try:
        return script.load()
    except SchemaUnknownError:
        return script.load(engine.describe_source)


def _described(execution: Execution, script: Script) -> RunInfo:
    return RunInfo(
        script=str(execution.script.file),
        strategy=execution.strategy,
        checkpoint=execution.checkpoint,
        queries=tuple(query.name for query in script.queries),
        warnings=(*map(str, script.warnings), *_unread(script)),
    )


def _unread(script: Script) -> Iterator[str]:
    """Yield that results which are kept in this process alone can be read by nobody."""
    for query in script.queries:
        if query.sink.format == "memory":
            yield (
                f"query '{query.name}' goes INTO memory, which is gone when this run ends, and only a program that "
                "runs the engine by itself can read it (engine.results in Python). Write INTO parquet, csv or json to "
                "keep results, or INTO console to look at them"
            )


def _wait(handle: RunHandle, stop: StopOnSignal, output: Output, watch: Watch | None) -> Summary:
    while not (stop.requested.is_set() or output.is_abandoned) and not handle.await_termination(_POLL_SECONDS):
        if watch is not None:
            watch.look()
    return handle.stop()
