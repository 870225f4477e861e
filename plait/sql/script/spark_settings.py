"""Settings of Spark under which Plait's results would not be what they are said to be, and so are refused.

Plait resolves names, types and comparisons itself, as Spark does by default, and evaluates some conditions outside of
Spark. A setting that changes what an expression means would change half of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final

from plait.spelling import folded
from plait.sql.predicates.evaluation import UTC

TIME_ZONE: Final = "spark.sql.session.timeZone"

_EXPECTED: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "spark.sql.ansi.enabled": ("true", "without it casts and overflows yield NULLs and wrapped numbers"),
        "spark.sql.ansi.doublequotedidentifiers": ("false", "double quotes enclose texts; put names in backquotes"),
        "spark.sql.ansi.enforcereservedkeywords": ("false", "put such names in backquotes"),
        "spark.sql.casesensitive": ("false", "names that differ in case only are one name"),
        "spark.sql.timestamptype": ("timestamp_ltz", "write TIMESTAMP_NTZ where wall-clock time is meant"),
        "spark.sql.parser.escapedstringliterals": ("false", r"write r'\d' for a text without escapes"),
        "spark.sql.parser.quotedregexcolumnnames": ("false", "list the columns"),
        "spark.sql.decimaloperations.allowprecisionloss": ("true", "cast to the decimal you want"),
    }
)
"""By name in lower case: the only value that Plait's results are right under, and what to do instead."""

_USELESS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "spark.sql.streaming.checkpointlocation": "the checkpoint is that of the run: plait run FILE --checkpoint DIR",
        "spark.sql.streaming.forcedeletetempcheckpointlocation": "Plait's checkpoint is not temporary",
        "spark.sql.streaming.multiplewatermarkpolicy": "Plait has one watermark, see DELAY and the option idle",
    }
)

_SQL: Final = "spark.sql."
_LIKENESS: Final = 0.9
_OPEN: Final = (
    *("spark.hadoop.", "spark.executorenv.", "spark.kubernetes.", "spark.yarn.", "spark.metrics.", "spark.databricks."),
    *("spark.sql.catalog.", "spark.plugins.", "spark.resources.", "spark.driverenv.", "spark.ssl."),
)
"""Begin settings of which there are as many as users and connectors like."""

_LEGACY: Final = "spark.sql.legacy."
_HARMLESS: Final = ("timeparserpolicy", "parquet.", "avro.", "csv.", "json.", "orc.", "xml.")
"""Legacy settings about how files are read, which Spark alone does."""


def spark_setting_problem(name: str, value: str) -> str | None:
    """Say why a Spark setting is refused, or None."""
    lower, wanted = name.strip().lower(), value.strip().strip("'\"").lower()
    if lower == TIME_ZONE.lower():
        return None if wanted in UTC else zone_problem(value)
    if lower in _USELESS:
        return f"{name} has no effect here: {_USELESS[lower]}; leave it out"
    if lower in _EXPECTED:
        expected, advice = _EXPECTED[lower]
        return None if wanted == expected else f"{name} is '{value}'; Plait needs {expected}: {advice}"
    if lower.startswith(_LEGACY) and not lower.removeprefix(_LEGACY).startswith(_HARMLESS):
        return (
            f"{name} changes what expressions mean, and so which rows join; leave it out and write expressions for "
            "Spark's defaults"
        )
    return _misspelt(name.strip()) or _impossible(name.strip(), wanted)


@cache
def _known() -> Mapping[str, str]:
    """Return the settings that Spark 4.2 has of its own; ``b``: true or false, ``n``: a number, maybe with a unit."""
    lines = files("plait.sql.script").joinpath("spark_settings.txt").read_text().splitlines()
    return MappingProxyType({name: kind for name, _, kind in (line.partition(" ") for line in lines)})


def _misspelt(name: str) -> str | None:
    """Say which setting is meant; Spark takes any name, and those it does not know do nothing. Of one that resembles
    none of Spark's nothing is said: it may be a connector's.
    """
    if name in _known() or name.lower().startswith(_OPEN):
        return None
    rest = {folded(known).removeprefix(_SQL): known for known in _known()}
    close = get_close_matches(folded(name).removeprefix(_SQL), rest, n=1, cutoff=_LIKENESS)
    if not close:
        return None
    return f"Spark has no setting '{name}', which would have no effect; did you mean '{rest[close[0]]}'?"


def _impossible(name: str, value: str) -> str | None:
    kind = _known().get(name)
    if kind == "b" and value not in ("true", "false"):
        return f"{name} is '{value}'; expected true or false"
    if kind == "n" and not any(character.isdigit() for character in value):
        return f"{name} is '{value}'; expected a number"
    return None


def zone_problem(zone: str) -> str:
    """Say why a session's time zone is refused."""
    return (
        f"{TIME_ZONE} is '{zone}'; Plait needs UTC: convert where it matters, with from_utc_timestamp(ts, '{zone}') "
        "for display and to_utc_timestamp(ts, '...') for input, or the option timeZone of csv and json"
    )
