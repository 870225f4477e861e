"""Operators that want the same rows by the same key have one table.

Two tables for one key of one source would send its rows twice for nothing. So operators that have an input (source and
key) in common are united, and what joins bind to each other goes along: a join of r.a with s.b and another of s.b with
t.c make one table for all three. Hundreds of queries come down to the few keys that their streams are joined on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from plait.optimizer.linear.linear_program import Ints
from plait.optimizer.partitioning.overlap import Operator, first_groups

Input: TypeAlias = tuple[str, str]
"""A source and the key that it is wanted by."""


def tables_of(inputs: Mapping[str, Sequence[Input]]) -> dict[str, int]:
    """Return the table of each operator, numbered from 0 in order.

    >>> tables_of({"q1": [("r", "a")], "q2": [("r", "a"), ("s", "b")], "q3": [("s", "c")]})
    {'q1': 0, 'q2': 0, 'q3': 1}
    """
    root: dict[Input, Input] = {}

    def find(of: Input) -> Input:
        while root.setdefault(of, of) != of:
            root[of] = root[root[of]]
            of = root[of]
        return of

    for wanted in inputs.values():
        for each in wanted:
            root[find(each)] = find(wanted[0])
    number: dict[Input, int] = {}
    return {name: number.setdefault(find(wanted[0]), len(number)) for name, wanted in inputs.items()}


def united_groups(operators: Sequence[Operator], tables: Mapping[str, int]) -> Ints:
    """Return for each key group the one it becomes in the table of its operator; for `Traffic.united`.

    Operators of one table have as many key groups.
    """
    sizes: dict[int, int] = {}
    for operator in operators:
        sizes[tables[operator.name]] = max(sizes.get(tables[operator.name], 0), operator.groups)
    firsts = dict(zip(sizes, np.cumsum([0, *sizes.values()]).tolist(), strict=False))
    into = np.zeros(int(first_groups(operators)[-1]), dtype=np.int64)
    for operator, first in zip(operators, first_groups(operators).tolist(), strict=False):
        into[first : first + operator.groups] = firsts[tables[operator.name]] + np.arange(operator.groups)
    return into
