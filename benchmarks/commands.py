"""Benchmarks by name. Each takes the command line's remaining arguments and returns an exit status.

Workloads run on several systems; `report` and `compare` read what they wrote; the others look at one part of Plait.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module

from benchmarks.workloads.listed import NAMES, workload

Bench = Callable[[list[str]], int]

_COMPONENTS = {
    "state": ("benchmarks.components.state", "reading and writing buckets, indexes and manifests"),
    "optimizer": ("benchmarks.components.optimizer", "time and savings of planning many queries"),
    "theta": ("benchmarks.components.theta", "joins that are no equality"),
    "batch": ("benchmarks.components.batch", "one micro-batch by the millisecond, with its jobs, stages and tasks"),
    "live": (
        "benchmarks.components.live_batches",
        "small batches of live streams by the millisecond, and what the slowest lose",
    ),
    "start": ("benchmarks.components.start", "from the command to the first batch, part by part"),
    "closing": (
        "benchmarks.components.closing_compared",
        "rows without a partner and groups of windows, against Spark's own, and Flink's",
    ),
    "flowing": ("benchmarks.suite.closing_live", "the same on live streams, beside Flink"),
    "kafka": ("benchmarks.components.kafka", "the three-way join of topics: what Kafka takes, and Flink beside"),
    "counting": ("benchmarks.components.counts_and_pairs", "counts and sums of a join, with pairs and without"),
    "deployment": ("benchmarks.components.deployment", "what a query waits that is asked for while others run"),
    "load": ("benchmarks.components.load", "what the service costs a run whose status and events many ask for"),
    "requests": ("benchmarks.components.request_costs", "what one more query takes of the driver, by pieces"),
    "costs": ("benchmarks.components.step_prices", "what a look-up and a match cost, for the strategy dppick"),
    "overhead": ("benchmarks.components.overhead", "what statistics and planning take of the processor"),
    "following": ("benchmarks.simulator.following", "how well plans follow the data, by counts"),
    "tables": ("benchmarks.components.table_choice", "the optimizer of shared partitioning on the grid of paper 001"),
    "sending": ("benchmarks.simulator.sending_compared", "rows and bytes that shared partitioning sends, by counts"),
    "trees": ("benchmarks.components.trees", "join trees under a storage budget, as in paper 002"),
}
_EVERYTHING = {"all": ("benchmarks.suite.everything", "every workload, and the page of what was found: 80 minutes")}
_READERS = {
    "report": ("benchmarks.reports.page", "make a page of what workloads wrote with --json"),
    "publish": ("benchmarks.reports.publish", "keep a run for readers: its data compressed, and a page of figures"),
    "compare": ("benchmarks.reports.compare", "tell what changed between two runs beyond the noise"),
}


def _module(name: str, arguments: list[str]) -> int:
    status: int = import_module(name).main(arguments)
    return status


def _workload(name: str, arguments: list[str]) -> int:
    from benchmarks.suite.command import main

    return main(name, arguments)


BENCHES: dict[str, Bench] = {
    **{name: partial(_workload, name) for name in NAMES},
    **{name: partial(_module, module) for name, (module, _) in {**_EVERYTHING, **_COMPONENTS, **_READERS}.items()},
}


def listing() -> list[tuple[str, str, str]]:
    """Return (kind, name, what it is) of everything there is."""
    workloads = [("workload", name, workload(name).summary) for name in NAMES]
    everything = [("suite", name, summary) for name, (_, summary) in _EVERYTHING.items()]
    parts = [("part of Plait", name, summary) for name, (_, summary) in _COMPONENTS.items()]
    return workloads + everything + parts + [("reader", name, summary) for name, (_, summary) in _READERS.items()]
