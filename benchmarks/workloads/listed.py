"""The workloads there are. Each is a module of this package with its description, `WORKLOAD`."""

from __future__ import annotations

from importlib import import_module

from benchmarks.workloads.case import Workload
from plait.errors import OptionError

NAMES = (
    "three-way",
    "tpch-joins",
    "tpch-random",
    "ajoin",
    "tpcds-returns",
    "chains",
    "nexmark-joins",
    "drift",
    "skew",
    "flights",
    "triples",
)


def workload(name: str) -> Workload:
    """Return a workload. Raises OptionError."""
    if name not in NAMES:
        raise OptionError(f"unknown workload '{name}'; expected one of {', '.join(NAMES)}")
    found: Workload = import_module(f"benchmarks.workloads.{name.replace('-', '_')}").WORKLOAD
    return found
