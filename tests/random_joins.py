"""Random join queries, to try optimizers on (paper 000, section VII.C).

Every relation is a stream with three attributes out of a common pool; two relations that have an attribute in common
can be joined on it. A query begins at a random relation and adds random joins until it has enough relations. All rates
are equal, and a join of two relations is as large as one of them (selectivity 1 / rate). The paper does not say how
many attributes there are; with as many as relations, each is shared by three relations on average.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from plait.optimizer.options import PlanOptions
from plait.plan.strategy_names import StrategyName
from plait.query.model import (
    DeclaredStatistics,
    Operand,
    Query,
    Relation,
    SinkSpec,
    SourceExpression,
    Stream,
)
from plait.query.predicates import Equality
from plait.stats.declared import declared_statistics
from plait.stats.model import Statistics

_SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomJoins:
    """What to draw. `attributes` None: as many as relations. Duplicates among `queries` draws are dropped."""

    relations: int
    queries: int
    size: int
    seed: int
    attributes: int | None = None
    attributes_each: int = 3
    rate: float = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """Streams and queries that were drawn."""

    streams: tuple[Stream, ...]
    queries: tuple[Query, ...]

    @property
    def statistics(self) -> Statistics:
        """Return what the streams declare."""
        return declared_statistics(self.streams)

    def options(self, strategy: StrategyName, parallelism: int) -> PlanOptions:
        """Return plan options for these streams."""
        return PlanOptions(strategy=strategy, sources=self.streams, parallelism=parallelism)


def draw(wanted: RandomJoins) -> Instance:
    """Draw streams and queries; equal arguments give equal instances."""
    rng = random.Random(wanted.seed)
    pool = [f"a{number}" for number in range(wanted.attributes or wanted.relations)]
    attributes = {
        f"r{number}": sorted(rng.sample(pool, min(wanted.attributes_each, len(pool))))
        for number in range(wanted.relations)
    }
    found: dict[tuple[tuple[str, str, str], ...], Query] = {}
    for number in range(wanted.queries):
        joins = _draw_joins(rng, attributes, wanted.size)
        found.setdefault(tuple(sorted(joins)), _query(f"q{number}", joins))
    return Instance(
        streams=tuple(_stream(name, attributes[name], wanted.rate) for name in sorted(attributes)),
        queries=tuple(found.values()),
    )


def _draw_joins(rng: random.Random, attributes: dict[str, list[str]], size: int) -> list[tuple[str, str, str]]:
    """Return (relation, relation, attribute) of each join. Starts anew where a walk cannot go on."""
    names = sorted(attributes)
    for _ in range(1_000):
        joined, joins = [rng.choice(names)], []
        while len(joined) < size:
            possible = [
                (min(one, other), max(one, other), attribute)
                for one in joined
                for other in names
                if other not in joined
                for attribute in attributes[one]
                if attribute in attributes[other]
            ]
            if not possible:
                break
            joins.append(rng.choice(possible))
            joined += [name for name in joins[-1][:2] if name not in joined]
        else:
            return joins
    raise ValueError(f"no {size} of these {len(names)} relations can be joined; draw fewer attributes")


def _query(name: str, joins: list[tuple[str, str, str]]) -> Query:
    relations = sorted({relation for one, other, _ in joins for relation in (one, other)})
    conditions = " AND ".join(f"{one}.{attribute} = {other}.{attribute}" for one, other, attribute in joins)
    text = f"SELECT * FROM {', '.join(relations)} WHERE {conditions}"
    return Query(
        name=name,
        relations=tuple(Relation(alias=alias, source=alias, window_us=_SECOND_US) for alias in relations),
        predicates=tuple(
            Equality(left=_operand(one, attribute), right=_operand(other, attribute)) for one, other, attribute in joins
        ),
        output=(),
        sink=SinkSpec(format="noop"),
        text=text,
        spark_text=text,
    )


def _operand(relation: str, attribute: str) -> Operand:
    return Operand(
        relation=relation, expression=SourceExpression(sql=f"`{attribute}`", columns=(attribute,)), type="bigint"
    )


def _stream(name: str, attributes: list[str], rate: float) -> Stream:
    distinct = tuple((attribute, rate) for attribute in attributes)
    return Stream(
        name=name,
        time="ts",
        window_us=_SECOND_US,
        declared=DeclaredStatistics(rate_rows_per_s=rate, distinct=distinct),
    )
