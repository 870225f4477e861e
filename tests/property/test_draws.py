"""Random cases draw every type that can be declared, in every kind of predicate it may be in."""

from __future__ import annotations

import random
from collections.abc import Iterator

from plait.optimizer import STRATEGIES
from plait.query.model import Query
from plait.query.predicates import Band, Equality, Residual, operands_of
from plait.query.types import is_key_type
from tests.property.case import Case, CaseQuery
from tests.property.cases import random_case, random_options
from tests.property.expressions import DATES, DECIMALS, INSTANTS, INTEGERS, Expression
from tests.property.front_end import from_text
from tests.property.values import CALENDAR, KINDS, NESTED, TEXTS_OF_OTHERS
from tests.unit.sql.reading import columns

SEEDS = range(7_000_000, 7_000_500)
NAMES = frozenset(kind.name for kind in KINDS)
ORDERED = INTEGERS | DECIMALS | DATES | INSTANTS | frozenset("fr") | {"big", "point"}
"""Kinds whose differences can be bounded."""

OWN_STORES = {"independent", "flat"}
"""Strategies of whose plans none follows another: one has other stores, the other is what `bushy` does without any."""

NOT_DRAWN = {
    "variant": "no connector that the oracle reads has it",
    "void": "holds nothing but NULL",
    "string collate unicode": "DuckDB has other collations",
    "interval": "no file holds it",
    "time(6)": "Spark refuses it",
    "decimal(38,38)": "compared with others, Spark rounds it and DuckDB does not",
}
"""What can be declared and is left out, and why."""


def drawn(seeds: range) -> Iterator[tuple[str, str]]:
    """Yield (kind of predicate, kind of a column in it) for the queries of these seeds."""
    for seed in seeds:
        case = random_case(seed, thetas=True, rows_scale=0.2)
        _, queries = from_text(case)
        for query, asked in zip(queries, case.queries, strict=True):
            kinds = kinds_of(case, asked)
            yield from ((what, kinds[column]) for what, column in columns_in(query))
            yield from mixed(asked)


def kinds_of(case: Case, query: CaseQuery) -> dict[tuple[str, str], str]:
    """Return the kind of each column, by relation and name."""
    return {
        (alias, column.name): column.kind.name
        for alias, source in query.relations
        for column in case.source(source).columns
    }


def columns_in(query: Query) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield (what it is in, column) for all columns that a query reads."""
    for relation in query.relations:
        for selection in relation.selections:
            yield from (("selection", (relation.alias, name)) for name in selection.columns)
    for predicate in query.predicates:
        what = {Equality: "equality", Band: "band", Residual: "residual"}[type(predicate)]
        for operand in operands_of(predicate):
            yield from ((what, (operand.relation, name)) for name in operand.expression.columns)
    for output in query.output:
        yield from (("output", (ref.relation, ref.column)) for ref in output.expression.columns)


def mixed(query: CaseQuery) -> Iterator[tuple[str, str]]:
    """Yield the pairs of kinds, as ``one = other``, that are compared."""
    for condition in query.conditions:
        sides: tuple[Expression, ...] = condition.operands
        if len(sides) == 2 and sides[0].columns[:1] != sides[1].columns[:1]:
            yield "mixed", " = ".join(sorted(side.kind for side in sides))


def test_every_kind_of_column_is_in_every_kind_of_predicate() -> None:
    seen = set(drawn(SEEDS))
    wanted = {("selection", name) for name in NAMES}
    wanted |= {("equality", name) for name in NAMES} | {("residual", name) for name in NAMES - NESTED}
    wanted |= {("band", name) for name in ORDERED}
    wanted |= {("output", name) for name in NAMES - CALENDAR}
    assert wanted - seen == set()
    pairs = [pair.split(" = ") for what, pair in seen if what == "mixed"]
    assert {name for one, other in pairs if one != other for name in (one, other)} >= TEXTS_OF_OTHERS
    decimals = {tuple(pair) for pair in pairs if set(pair) <= DECIMALS | {"big", "point"} and pair[0] != pair[1]}
    assert len(decimals) >= 3


def test_every_strategy_is_drawn_alone_and_after_others_on_their_state() -> None:
    drawn_ways = [random_options(random.Random(f"way {seed}"), 4).strategies for seed in range(500)]
    assert {way[0] for way in drawn_ways if len(set(way)) == 1} == {*STRATEGIES, "random"}
    assert {one for way in drawn_ways if len(set(way)) > 1 for one in way} == {*STRATEGIES, "random"} - OWN_STORES


def test_every_type_that_can_be_declared_is_drawn_or_left_out_for_a_reason() -> None:
    declared = """
        a BOOLEAN, b TINYINT, c SMALLINT, d INT, e BIGINT, f FLOAT, g DOUBLE, h DATE, i TIMESTAMP, j TIMESTAMP_NTZ,
        k STRING, l BINARY, m VARIANT, n VOID, o DECIMAL(38,18), p DECIMAL(38,38), q ARRAY<INT>, r MAP<STRING, INT>,
        s STRUCT<f: INT, s: STRING>, t INTERVAL DAY TO SECOND, u INTERVAL HOUR, v INTERVAL YEAR TO MONTH,
        w INTERVAL MONTH, x INTERVAL, y TIME, z STRING COLLATE UNICODE
    """
    types = {column.type.lower() for column in columns(declared)}
    spelled = ", ".join(f"{kind.name} {kind.spark}" for kind in KINDS)
    found = {column.type for column in columns(spelled)}
    assert types - found == set(NOT_DRAWN)
    assert {type_ for type_ in NOT_DRAWN if is_key_type(type_)} == {"decimal(38,38)"}
