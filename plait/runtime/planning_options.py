"""What planning may spend, as options of an engine."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from plait.errors import OptionError
from plait.sql.lexis.durations import parse_duration_us

PLANNING: Mapping[str, str] = MappingProxyType(
    {
        "storage_rows": "storage_rows",
        "task_rows": "task_rows",
        "storage_bytes": "storage_bytes",
        "store_weight": "store_weight",
        "time_limit": "time_limit_s",
        "gap": "gap",
    }
)
"""What planning may spend: fields of `PlanOptions` by option, ``plait.<option>``."""

PLANNING_DEFAULTS: Mapping[str, float] = MappingProxyType({"store_weight": 100.0})
"""Where an engine departs from the defaults of `PlanOptions`, which are the papers'.

To keep a row of an intermediate result its columns are gathered, sorted, indexed, written and later merged: measured on
joins of TPC-H, as much work as 5 to 20 probe tuples, depending on its width. It also takes space, often a job more in
each batch, and what it saves is an estimate. Over ten random joins of TPC-H (benchmark `tpch-random`, scale 1) a
weight of 30 ran no faster than 100, which keeps no intermediate result there and a seventh fewer bytes.
"""


def planning_option(option: str, value: str) -> dict[str, float]:
    """Return the field that an option of `PLANNING` sets. Raises OptionError for a duration that is none."""
    if option != "time_limit":
        return {PLANNING[option]: float(value)}
    limit_us = parse_duration_us(value)
    if limit_us is None:
        raise OptionError("'plait.time_limit' must be a duration, such as '20 seconds'")
    return {PLANNING[option]: limit_us / 1_000_000}
