from itertools import combinations

import pytest

from plait.query.graph import QueryGraph
from tests.unit.sql.reading import bound


def graph(edges: str, aliases: str | None = None) -> QueryGraph:
    """Return the graph of ``ab bc``."""
    names = aliases or "".join(dict.fromkeys(edges.replace(" ", "")))
    return QueryGraph(aliases=tuple(names), pairs=tuple((edge[0], edge[1]) for edge in edges.split()))


@pytest.mark.parametrize(
    ("edges", "aliases", "shape"),
    [
        ("", "a", "single"),
        ("ab", None, "chain"),
        ("ab bc cd", None, "chain"),
        ("ab ac ad", None, "star"),
        ("ab ac ad de", None, "tree"),
        ("ab bc ca", None, "clique"),
        ("ab bc cd da", None, "cycle"),
        ("ab ac ad bc bd cd", None, "clique"),
        ("ab bc cd da ac", None, "cyclic"),
        ("ab", "abc", "disconnected"),
    ],
)
def test_shapes_are_recognized(edges: str, aliases: str | None, shape: str) -> None:
    assert graph(edges, aliases).shape == shape


def test_neighbours_are_counted_once_however_many_equalities_there_are() -> None:
    found = graph("ab ba bc")
    assert found.neighbours("b") == ("a", "c")
    assert found.neighbours_of("ab") == ("c",)
    assert found.edges == (("a", "b"), ("b", "c"))


@pytest.mark.parametrize("edges", ["ab bc cd", "ab ac ad", "ab bc cd da", "ab ac ad bc bd cd", "ab cd"])
def test_connected_subsets_are_exactly_those_whose_members_reach_each_other(edges: str) -> None:
    found = graph(edges)
    listed = list(found.connected_subsets())
    expected = {
        frozenset(subset)
        for size in range(1, 5)
        for subset in combinations(found.aliases, size)
        if found.is_connected(subset)
    }
    assert set(listed) == expected
    assert len(listed) == len(expected)
    assert [len(subset) for subset in listed] == sorted(len(subset) for subset in listed)


def test_components_are_the_parts_a_cross_join_puts_side_by_side() -> None:
    found = bound("SELECT 1 FROM orders a CROSS JOIN items i JOIN orders b ON a.id = b.id").graph
    assert found.components == (frozenset("ab"), frozenset("i"))
    assert not found.is_connected(("a", "i"))
    assert not found.is_connected(())
