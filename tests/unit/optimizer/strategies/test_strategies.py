from __future__ import annotations

import importlib

import pytest

from plait.errors import OptionError, UnsupportedQueryError
from plait.optimizer import STRATEGIES, plan
from plait.stats.model import Statistics
from tests.unit.optimizer.queries import edges, options, orders, planned, query, stream, table

CHAIN = query("q", {"r": "r", "s": "s", "t": "t"}, ["r.a = s.a", "s.b = t.b"])


def test_fixed_follows_from_and_skips_what_is_not_connected_yet() -> None:
    asked = query("q", {"t": "t", "r": "r", "s": "s"}, ["r.a = s.a", "s.b = t.b"])
    assert orders(planned((asked,), "fixed")) == {"q/t": "t s r", "q/r": "r s t", "q/s": "s t r"}


def test_fixed_crosses_only_when_it_must() -> None:
    asked = query("q", {"r": "r", "x": "x", "s": "s"}, ["r.a = s.a"])
    assert orders(planned((asked,), "fixed"))["q/r"] == "r s x"


def test_selectivity_prefers_the_selective_predicate_and_greedy_the_small_result() -> None:
    sources = (
        stream("r", rate=100_000, distinct={"a": 1_000}),
        stream("s", rate=100, distinct={"a": 1_000, "b": 10}),
        stream("t", rate=1, distinct={"b": 10}),
    )
    assert orders(planned((CHAIN,), "selectivity", sources=sources))["q/s"] == "s r t"
    assert orders(planned((CHAIN,), "greedy", sources=sources))["q/s"] == "s t r"


def test_selectivity_counts_the_selection_of_the_probed_relation() -> None:
    sources = (
        stream("r", distinct={"a": 100}),
        stream("s", distinct={"a": 1, "b": 1}),
        stream("t", distinct={"b": 50}),
    )
    asked = query("q", {"r": "r", "s": "s", "t": "t"}, ["r.a = s.a", "s.b = t.b"], where={"t": ["`v` = 1"]})
    assert orders(planned((CHAIN,), "selectivity", sources=sources))["q/s"] == "s r t", "1/100 before 1/50"
    assert orders(planned((asked,), "selectivity", sources=sources))["q/s"] == "s t r", "1/50 of a quarter before 1/100"


def test_selectivity_breaks_ties_by_the_smaller_result() -> None:
    sources = (stream("r", rate=9, distinct={"a": 100}), stream("s", rate=1), stream("t", rate=5, distinct={"b": 100}))
    assert orders(planned((CHAIN,), "selectivity", sources=sources))["q/s"] == "s t r"


def test_independent_shares_neither_stores_nor_steps() -> None:
    twin = query("p", {"r": "r", "s": "s", "t": "t"}, ["r.a = s.a", "s.b = t.b"])
    made = planned((CHAIN, twin), "independent")
    assert [store.id for store in made.stores] == ["p/r", "p/s", "p/t", "q/r", "q/s", "q/t"]
    assert {store.source for store in made.stores} == {"r", "s", "t"}
    assert len(edges(made)) == 2 * len(edges(planned((CHAIN,), "independent")))


def test_store_names_of_independent_stay_apart_when_names_hold_slashes() -> None:
    queries = (query("a", {"m": "b/c"}), query("a/b", {"m": "c"}))
    assert [store.id for store in planned(queries, "independent").stores] == ["a//b/c", "a/b//c"]


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_a_strategy_has_an_example_in_its_docstring(strategy: str) -> None:
    """`tests/unit/test_docstrings.py` runs it."""
    module = importlib.import_module(f"plait.optimizer.strategies.{strategy.replace('-', '_')}")
    assert module.__doc__ is not None
    assert ">>>" in module.__doc__


def test_an_unknown_strategy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        OptionError,
        match=r"'ilpp'.*bushy, chain, dppick, fixed, flat, greedy, ilp, independent, left-deep, selectivity, shared",
    ):
        plan((CHAIN,), Statistics(), options("ilpp", [stream("r"), stream("s"), stream("t")]))


def test_an_unknown_source_is_refused() -> None:
    with pytest.raises(OptionError, match=r"query 'q' reads 't'.*'r', 's'"):
        plan((CHAIN,), Statistics(), options("greedy", [stream("r"), stream("s")]))


def test_two_queries_of_one_name_are_refused() -> None:
    with pytest.raises(OptionError, match="2 queries are named 'q'"):
        planned((CHAIN, CHAIN))


def test_a_query_over_tables_only_is_refused() -> None:
    asked = query("q", {"x": "x"}, tables={"x"})
    with pytest.raises(UnsupportedQueryError, match="reads tables only"):
        plan((asked,), Statistics(), options("greedy", [table("x")]))


@pytest.mark.parametrize("parallelism", [0, -3])
def test_an_impossible_parallelism_is_refused(parallelism: int) -> None:
    with pytest.raises(OptionError, match="at least 1"):
        options("greedy", [stream("r")], parallelism)
    with pytest.raises(OptionError, match="source 'r'"):
        options("greedy", [stream("r")], 1, r=parallelism)


def test_parallelism_of_an_unknown_source_is_refused() -> None:
    with pytest.raises(OptionError, match="'x', which does not exist"):
        options("greedy", [stream("r")], 1, x=2)
