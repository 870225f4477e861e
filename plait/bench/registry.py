"""Benchmarks by name. Each takes the command line's remaining arguments and returns an exit status."""

from __future__ import annotations

from collections.abc import Callable

Bench = Callable[[list[str]], int]


def _three_way(arguments: list[str]) -> int:
    from plait.bench.three_way import main

    return main(arguments)


def _state(arguments: list[str]) -> int:
    from plait.bench.state import main

    return main(arguments)


def _multi_query(arguments: list[str]) -> int:
    from plait.bench.multi_query import main

    return main(arguments)


def _optimizer(arguments: list[str]) -> int:
    from plait.bench.optimizer import main

    return main(arguments)


def _theta(arguments: list[str]) -> int:
    from plait.bench.theta import main

    return main(arguments)


def _trees(arguments: list[str]) -> int:
    from plait.bench.trees import main

    return main(arguments)


BENCHES: dict[str, Bench] = {
    "three-way": _three_way,
    "state": _state,
    "multi-query": _multi_query,
    "optimizer": _optimizer,
    "theta": _theta,
    "trees": _trees,
}
