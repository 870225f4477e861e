"""What ``SET`` may set: one table, with what each option accepts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from plait.errors import OptionError
from plait.plan.strategy_names import STRATEGY_NAMES
from plait.sql.lexis.durations import parse_duration_us
from plait.sql.lexis.names import did_you_mean
from plait.sql.script.spark_settings import spark_setting_problem

_MOST_PARTITIONS: Final = 4096
_MOST_CYCLES: Final = 1000
"""Each is in every manifest: paper 003 finds that more than 60 change nothing."""
UNBOUNDED: Final = frozenset({"none", "off"})


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionRule:
    """`expects` completes "expected ..."; `accepts` judges a value in lower case, unless its case `matters`."""

    expects: str
    accepts: Callable[[str], bool]
    matters: bool = False


def _one_of(*values: str) -> OptionRule:
    return OptionRule(expects=" or ".join((", ".join(values[:-1]), values[-1])), accepts=lambda value: value in values)


def _is_partition_count(value: str) -> bool:
    return re.fullmatch(r"\d{1,6}", value) is not None and 1 <= int(value) <= _MOST_PARTITIONS


def _is_interval(value: str) -> bool:
    try:
        duration = parse_duration_us(value)
    except OptionError:
        return False
    return duration is not None and duration >= 0


def batches_of(value: str) -> int | None:
    """Return the number in ``5 batches``; None if that is not what it says."""
    match = re.fullmatch(r"([1-9]\d{0,5}) batch(es)?", value)
    return int(match[1]) if match else None


def _is_cycle(value: str) -> bool:
    return batches_of(value) is not None or (_is_interval(value) and bool(parse_duration_us(value)))


_COUNT: Final = OptionRule(expects=f"a whole number from 1 to {_MOST_PARTITIONS}", accepts=_is_partition_count)
_SIZE: Final = OptionRule(
    expects="a whole number above zero", accepts=lambda value: re.fullmatch(r"[1-9]\d{0,17}", value) is not None
)
_LIMIT: Final = OptionRule(
    expects="a whole number of at least 0", accepts=lambda value: re.fullmatch(r"\d{1,18}", value) is not None
)
_BYTES: Final = replace(_SIZE, expects="a number of bytes above zero, such as 10737418240 for 10 GiB")
_LIMIT_BYTES: Final = replace(_LIMIT, expects="a number of bytes of at least 0, such as 1073741824 for 1 GiB")
_NUMBER: Final = OptionRule(
    expects="a number of at least 0", accepts=lambda value: re.fullmatch(r"\d{1,18}(\.\d{1,9})?", value) is not None
)
_SHARE: Final = OptionRule(
    expects="a share from 0 to 1, such as 0.01",
    accepts=lambda value: re.fullmatch(r"0(\.\d{1,9})?|1(\.0{1,9})?", value) is not None,
)
_SIZE_OR_NONE: Final = OptionRule(
    expects="a whole number above zero, or none", accepts=lambda value: value in UNBOUNDED or _SIZE.accepts(value)
)
_INTERVAL: Final = OptionRule(expects="a duration such as '1 second'", accepts=_is_interval)

_CYCLE: Final = OptionRule(expects="a duration such as '10 seconds', or '5 batches'", accepts=_is_cycle)
_CYCLES: Final = OptionRule(
    expects=f"a whole number of cycles from 2 to {_MOST_CYCLES}",
    accepts=lambda value: re.fullmatch(r"\d{1,6}", value) is not None and 2 <= int(value) <= _MOST_CYCLES,
)

_PATHS: Final = OptionRule(
    expects="paths or URIs with commas between, such as 'out, s3://bucket/results'",
    accepts=lambda value: all(path.strip() and path.strip()[0] != "-" for path in value.split(",")),
    matters=True,
)

_SWITCH: Final = _one_of("true", "false", "on", "off")

_PARTITIONS_OF: Final = "plait.parallelism."

OPTIONS: Mapping[str, OptionRule] = MappingProxyType(
    {
        "plait.strategy": _one_of(*STRATEGY_NAMES),
        "plait.parallelism": _COUNT,
        "plait.routing": _one_of("auto", "local", "shuffle"),
        "plait.compaction": _SWITCH,
        "plait.backfill": _SWITCH,
        "plait.trigger": _INTERVAL,
        "plait.batch_rows": _SIZE_OR_NONE,
        "plait.capacity": _SIZE,
        "plait.chunk_rows": _SIZE,
        "plait.cache_bytes": _BYTES,
        "plait.storage_rows": _LIMIT,
        "plait.task_rows": _SIZE,
        "plait.storage_bytes": _LIMIT_BYTES,
        "plait.store_weight": _NUMBER,
        "plait.time_limit": _INTERVAL,
        "plait.gap": _SHARE,
        "plait.adapt": _one_of("auto", "off"),
        "plait.cycle": _CYCLE,
        "plait.history": _CYCLES,
        "plait.forecast": _one_of("trends", "last"),
        "plait.allow_paths": _PATHS,
        "plait.max_queries": _SIZE,
    }
)
"""Besides these there are ``plait.parallelism.<source>`` and ``spark.*``, which Spark judges."""


SERVICE_OPTIONS: Final = frozenset({"plait.allow_paths", "plait.max_queries"})
"""Those that say what the service lets others do; they mean nothing to the engine."""


def checked_option(name: str, value: str) -> tuple[str, str]:
    """Return (name, value) as the engine takes them. Raises OptionError for an unknown name or an impossible value."""
    if name.lower().startswith("spark."):
        problem = spark_setting_problem(name, value)
        if problem is not None:
            raise OptionError(problem)
        return name, value
    if name.lower().startswith(_PARTITIONS_OF):
        if not _is_partition_count(value.strip()):
            raise OptionError(f"{name} is '{value}'; expected {_COUNT.expects}")
        return _PARTITIONS_OF + name[len(_PARTITIONS_OF) :], value.strip()
    rule = OPTIONS.get(name.lower())
    if rule is None:
        raise OptionError(f"'{name}' is not an option{did_you_mean(name, OPTIONS)}")
    taken = value.strip() if rule.matters else value.strip().lower()
    if not rule.accepts(taken):
        raise OptionError(f"{name} is '{value}'; expected {rule.expects}")
    return name.lower(), taken


def source_option_problem(name: str, sources: Iterable[str]) -> str | None:
    """Say why an option of a source (``plait.parallelism.<source>``) does nothing, or None."""
    if not name.startswith(_PARTITIONS_OF):
        return None
    source, known = name[len(_PARTITIONS_OF) :], list(sources)
    if source in known:
        return None
    return f"{name}: there is no stream or table '{source}'{did_you_mean(source, known)}"
