"""Random variants of the three-way join: other joins, selections and windows over the same streams r, s, t.

The queries of a seed are one list; a workload of n queries is its beginning. So a larger workload asks everything that
a smaller one does, and what it costs beyond is due to the questions added.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from benchmarks.workloads.joins import Join, JoinQuery, JoinStream, OutputOf
from plait.query.model import Column

STREAMS: tuple[JoinStream, ...] = tuple(
    JoinStream(
        name=name,
        time="ts",
        columns=(
            Column(name="ts", type="timestamp"),
            *(Column(name=column, type="bigint") for column in columns),
        ),
    )
    for name, columns in (("r", ("ra", "rv")), ("s", ("sa", "sb", "sv")), ("t", ("tb", "tv")))
)

WINDOWS_S = (10, 20, 30)
_SHARES = (2, 4, 10)

_RS = (("ra", "sa"), ("ra", "sb"))
_ST = (("sb", "tb"), ("sa", "tb"))
_RT = (("ra", "tb"),)


def _joins(left: str, right: str, pairs: tuple[tuple[str, str], ...]) -> tuple[Join, ...]:
    return tuple(Join(left=left, right=right, columns=(pair,)) for pair in pairs)


_JOINS = {("r", "s"): _joins("r", "s", _RS), ("s", "t"): _joins("s", "t", _ST), ("r", "t"): _joins("r", "t", _RT)}

_SHAPES: tuple[tuple[tuple[str, str], ...], ...] = (
    (("r", "s"),),
    (("s", "t"),),
    (("r", "t"),),
    (("r", "s"), ("s", "t")),
    (("r", "s"), ("r", "t")),
    (("r", "t"), ("s", "t")),
)


def draw_triples(seed: int) -> Iterator[JoinQuery]:
    """Yield different random queries without end in practice (there are some ten thousand).

    Each joins two or three streams on columns drawn anew, with a window of 10, 20 or 30 seconds. With even chances a
    relation has a selection, which keeps a half, a quarter or a tenth of it.
    """
    random = Random(seed)
    seen: set[tuple[object, ...]] = set()
    while True:
        shape = random.choice(_SHAPES)
        joins = tuple(random.choice(_JOINS[pair]) for pair in shape)
        relations = tuple(dict.fromkeys(relation for pair in shape for relation in pair))
        selections = tuple(selection for relation in relations for selection in _selection(random, relation))
        window_s = random.choice(WINDOWS_S)
        content = (frozenset(joins), frozenset(selections), window_s)
        if content in seen:
            continue
        seen.add(content)
        yield JoinQuery(
            name=f"q{len(seen)}",
            relations=_connected(relations, joins),
            joins=joins,
            outputs=tuple(output for relation in relations for output in _outputs(relation)),
            selections=selections,
            window_s=window_s,
        )


def _selection(random: Random, relation: str) -> tuple[tuple[str, str], ...]:
    if random.random() < 0.5:
        return ()
    share = random.choice(_SHARES)
    return ((relation, f"{relation}.{relation}v % {share} = {random.randrange(share)}"),)


def _connected(relations: tuple[str, ...], joins: tuple[Join, ...]) -> tuple[str, ...]:
    """Return the relations in an order in which each is joined with an earlier one: the one in the middle second."""
    if len(relations) == 2:
        return relations
    (middle,) = frozenset.intersection(*(join.relations for join in joins))
    first, last = (relation for relation in relations if relation != middle)
    return first, middle, last


def _outputs(relation: str) -> tuple[OutputOf, ...]:
    columns = next(stream.columns for stream in STREAMS if stream.name == relation)
    return tuple(OutputOf(relation=relation, column=column.name, type=column.type) for column in columns)
