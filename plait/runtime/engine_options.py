"""An engine's options, as given to its constructor or by ``SET``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Number
from typing import Any, Final, Literal, TypeAlias

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from plait.adapt.adapter import Habits
from plait.adapt.budget import Budget
from plait.adapt.forecast import Outlook
from plait.adapt.planning import PlanRequest
from plait.adapt.reconsidering import Policy
from plait.arguments import is_truth
from plait.errors import OptionError
from plait.optimizer.options import BUDGETED, PlanOptions
from plait.plan.strategy_names import DEFAULT_STRATEGY, StrategyName
from plait.query.model import Query, Source
from plait.runtime.admission.survey import BATCH_ROWS, batch_rows_option
from plait.runtime.planning_options import PLANNING, PLANNING_DEFAULTS, planning_option
from plait.runtime.settings import Routing, Settings
from plait.runtime.spark.session import has_one_executor
from plait.sql.lexis.durations import parse_duration_us
from plait.sql.script.set_options import SERVICE_OPTIONS, batches_of, checked_option, source_option_problem
from plait.stats.cycles import TEN_SECONDS, CycleLength

RoutingChoice: TypeAlias = Literal["auto"] | Routing

_TRUE = frozenset({"true", "on"})

ADAPTING: Final = frozenset({"adapt", "cycle", "history", "forecast"})
"""Options of how plans follow the data, ``plait.<option>``."""


def _refused(name: str, error: PySparkException) -> str:
    """Say why Spark does not take a setting: because it runs, or because of the value."""
    if (error.getCondition() or "").startswith("CANNOT_MODIFY"):
        return f"{name} cannot be set while Spark runs; set it when the session is built"
    said = re.sub(r"^\[\S+\] | SQLSTATE: \w+$", "", str(error).strip().split("\n", 1)[0])
    return f"{name} cannot be set so: {said}"


def written(name: object, value: object) -> tuple[str, str]:
    """Return an option that a program sets as a script would write it. Raises OptionError for a name that is no text,
    and for a value that no script could write; None is ``none`` where an option has that.
    """
    if not isinstance(name, str):
        raise OptionError(f"expected the name of an option, such as 'plait.routing', found {name!r}")
    if is_truth(value):
        return name, str(value).lower()
    if isinstance(value, str | Number) or (value is None and not name.lower().startswith("spark.")):
        return name, str(value)
    raise OptionError(f"{name} is {value!r}; expected a text, a number, True or False")


@dataclass(slots=True, kw_only=True)
class EngineOptions:
    """Current values. `parallelism` None: as many partitions as tasks run at a time."""

    strategy: StrategyName = DEFAULT_STRATEGY
    parallelism: int | None = None
    routing: RoutingChoice = "auto"
    trigger: str = "1 second"
    batch_rows: int | None = BATCH_ROWS
    parallelism_by_source: dict[str, int] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    switches: dict[str, bool] = field(default_factory=dict)
    adapting: dict[str, str] = field(default_factory=dict)
    planning: dict[str, float] = field(default_factory=lambda: dict(PLANNING_DEFAULTS))

    def apply(self, spark: SparkSession, name: str, value: str | float | None) -> None:
        """Set an option of Plait, or one of the session: whatever is called ``spark.*``. Raises OptionError."""
        name, text = checked_option(*written(name, value))
        if not name.startswith("spark."):
            self.set(name.removeprefix("plait."), text)
            return
        try:
            spark.conf.set(name, text)
        except PySparkException as error:
            raise OptionError(_refused(name, error)) from error

    def set(self, key: str, value: str) -> None:
        """Set the option ``plait.<key>`` to a value that `plait.sql.script.set_options.checked_option` let pass."""
        if key in {"strategy", "routing", "trigger"}:
            setattr(self, key, value)
        elif key == "batch_rows":
            self.batch_rows = batch_rows_option(value)
        elif key == "parallelism":
            self.parallelism = int(value)
        elif key.startswith("parallelism."):
            self.parallelism_by_source[key.removeprefix("parallelism.")] = int(value)
        elif key in {"capacity", "chunk_rows", "cache_bytes"}:
            self.numbers[key] = int(value)
        elif key in ADAPTING:
            self.adapting[key] = value.lower()
        elif key in {"compaction", "backfill"}:
            self.switches[key] = value.lower() in _TRUE
        elif key in PLANNING:
            self.planning |= planning_option(key, value)
        elif f"plait.{key}" in SERVICE_OPTIONS:
            return
        else:
            raise OptionError(f"unknown option 'plait.{key}'")

    def settings(self, spark: SparkSession, slots: int) -> Settings:
        """Return how batches are carried out on this session, where `slots` tasks run at a time."""
        is_alone = has_one_executor(spark)
        routing = self.routing
        if routing == "auto":
            routing = "local" if is_alone else "shuffle"
        defaults = Settings(slots=slots, routing=routing)
        return Settings(
            slots=slots,
            routing=routing,
            is_cluster=not is_alone,
            cache_bytes=self.numbers.get("cache_bytes"),
            budget=self._budget(),
            capacity=self.numbers.get("capacity", defaults.capacity),
            chunk_rows=self.numbers.get("chunk_rows", defaults.chunk_rows),
            compaction=self.switches.get("compaction", defaults.compaction),
            backfill=self.switches.get("backfill", defaults.backfill),
            habits=habits(self.adapting),
            history=int(self.adapting.get("history", defaults.history)),
        )

    def _budget(self) -> Budget | None:
        """Return what stores may keep, None if no option says so or the strategy does not choose what it keeps."""
        for option, in_bytes in (("storage_rows", False), ("storage_bytes", True)):
            if option in self.planning and self.strategy in BUDGETED:
                return Budget(limit=self.planning[option], in_bytes=in_bytes)
        return None

    def request(self, slots: int, queries: tuple[Query, ...], sources: dict[str, Source]) -> PlanRequest:
        """Return what a plan for these queries depends on, where `slots` tasks run at a time. Raises OptionError
        for the parallelism of a source that there is not.
        """
        for source in self.parallelism_by_source:
            problem = source_option_problem(f"plait.parallelism.{source}", sources)
            if problem is not None:
                raise OptionError(problem)
        limits: dict[str, Any] = dict(self.planning)
        return PlanRequest(
            queries=queries,
            options=PlanOptions(
                strategy=self.strategy,
                sources=tuple(sources.values()),
                parallelism=self.parallelism or slots,
                parallelism_by_source=tuple(sorted(self.parallelism_by_source.items())),
                **limits,
            ),
        )


def habits(options: Mapping[str, str]) -> Habits:
    """Return how plans follow the data. `options`: values that `checked_option` let pass, by option."""
    return Habits(
        adapts=options.get("adapt", "auto") != "off",
        policy=Policy(outlook=Outlook(trends=options.get("forecast", "trends") != "last")),
        cycle=_cycle(options["cycle"]) if "cycle" in options else TEN_SECONDS,
    )


def _cycle(value: str) -> CycleLength:
    batches = batches_of(value)
    if batches is not None:
        return CycleLength(batches=batches)
    return CycleLength(seconds=(parse_duration_us(value) or 0) / 1_000_000)
