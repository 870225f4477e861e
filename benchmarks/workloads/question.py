"""The three-way join: ra = sa, sb = tb, and all three within 30 seconds of each other."""

from __future__ import annotations

from benchmarks.workloads.joins import Join, JoinQuery, OutputOf, QuerySet
from benchmarks.workloads.triples_random import STREAMS

WINDOW_S = 30
_OUTPUTS = {"r": ("ts", "rv"), "s": ("ts", "sa", "sb", "sv"), "t": ("ts", "tv")}

THREE_WAY = QuerySet(
    streams=STREAMS,
    queries=(
        JoinQuery(
            name="triples",
            relations=("r", "s", "t"),
            joins=(
                Join(left="r", right="s", columns=(("ra", "sa"),)),
                Join(left="s", right="t", columns=(("sb", "tb"),)),
            ),
            outputs=tuple(
                OutputOf(relation=relation, column=column, type="timestamp" if column == "ts" else "bigint")
                for relation, columns in _OUTPUTS.items()
                for column in columns
            ),
            window_s=WINDOW_S,
        ),
    ),
)
