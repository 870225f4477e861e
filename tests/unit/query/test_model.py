"""What a query says about its own relations."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plait.query.model import Operand
from plait.query.predicates import Residual
from tests.unit.optimizer.queries import expression, query

PAIRS = query("pairs", {"b": "s", "a": "s", "n": "t"}, ["b.x = a.x", "a.y = n.y", "a.z = b.z"], tables={"t"})


@pytest.mark.parametrize("pair", ["ab", "ba"])
def test_predicates_between_two_relations_are_found_from_either_side_in_their_order(pair: str) -> None:
    assert PAIRS.between(*pair) == (PAIRS.predicates[0], PAIRS.predicates[2])
    assert PAIRS.between("b", "n") == ()


def test_occurrences_of_a_source_count_in_from_order_whatever_their_aliases() -> None:
    assert [PAIRS.canonical(alias) for alias in "ban"] == [("s", 0), ("s", 1), ("t", 0)]
    assert PAIRS.starts == ("b", "a")


def test_a_residual_predicate_joins_the_two_relations_of_its_operands_however_many_it_reads() -> None:
    def read(alias: str, column: str) -> Operand:
        return Operand(relation=alias, expression=expression(f"`{column}`"))

    residual = Residual(operands=(read("r", "x"), read("s", "y"), read("r", "z")), sql="", text="")
    joined = replace(query("q", {"s": "s", "r": "r"}), predicates=(residual,))
    assert joined.graph.pairs == (("r", "s"),)
    assert joined.between("s", "r") == (residual,)
    assert list(joined.mentioned()) == [("r", "x"), ("s", "y"), ("r", "z")]
