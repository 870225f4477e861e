"""A chain of streams, each joined with the next: ``c1.k1 = c2.k1``, ``c2.k2 = c3.k2`` and so on."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.workloads.joins import Join, JoinQuery, JoinStream, OutputOf
from plait.query.model import Column


def chain_streams(length: int) -> tuple[JoinStream, ...]:
    """Return the streams: event time ``ts``, row number ``nr``, and the keys shared with the neighbours."""
    return tuple(
        JoinStream(
            name=f"c{place}",
            time="ts",
            columns=(
                Column(name="ts", type="timestamp"),
                *(Column(name=name, type="bigint") for name in ("nr", *_keys(place, length))),
            ),
        )
        for place in range(1, length + 1)
    )


def _keys(place: int, length: int) -> tuple[str, ...]:
    return tuple(f"k{key}" for key in (place - 1, place) if 1 <= key < length)


def chain_query(name: str, streams: Sequence[JoinStream], window_s: int | None) -> JoinQuery:
    """Return the join of all the streams, from the first to the last; it selects every time and row number."""
    relations = tuple(stream.name for stream in streams)
    return JoinQuery(
        name=name,
        relations=relations,
        joins=tuple(
            Join(left=f"c{key}", right=f"c{key + 1}", columns=((f"k{key}", f"k{key}"),))
            for key in range(1, len(relations))
        ),
        outputs=tuple(
            OutputOf(relation=relation, column=column, type=kind)
            for relation in relations
            for column, kind in (("ts", "timestamp"), ("nr", "bigint"))
        ),
        window_s=window_s,
    )
