"""Hand-computed cases of paper 002, fig. 4: minimize |X|·N(Rj) + |X ⋈ Rj|·N(Rk) over Rj and Rk."""

from __future__ import annotations

import pytest

from plait.optimizer import plan
from plait.query.model import Query
from plait.stats.declared import declared_statistics
from tests.unit.optimizer.queries import options, orders, query, stream, table

STAR = query(
    "q",
    {"c": "c", "x": "x", "y": "y", "z": "z"},
    ["c.kx = x.k", "c.ky = y.k", "c.kz = z.k"],
)


def sources(**rows: float) -> tuple[object, ...]:
    """Streams by (rows in the 10 s window), each key of which is distinct 100 times."""
    return tuple(
        stream(name, rate=count / 10, distinct={"k": 100, "kx": 100, "ky": 100, "kz": 100})
        for name, count in rows.items()
    )


def greedy_orders(asked: Query, known: tuple[object, ...], **parallelism: int) -> dict[str, str]:
    chosen = options("greedy", known, 1, **parallelism)  # type: ignore[arg-type]
    return orders(plan((asked,), declared_statistics(chosen.sources), chosen))


def test_the_smallest_result_comes_first_where_all_stores_are_equally_parallel() -> None:
    # From c (100): ⋈ x 300, ⋈ y 200, ⋈ z 100.
    found = greedy_orders(STAR, sources(c=100, x=300, y=200, z=100))
    assert found["q/c"] == "c z y x"
    # From x only c is connected; then z (100·f) before y.
    assert found["q/x"] == "x c z y"


def test_a_parallel_store_is_probed_late_even_if_its_result_is_smaller() -> None:
    # From c: z first costs 100·8 + 100·1 = 900; y first 100·1 + 200·1 = 300, x first 100·1 + 300·1 = 400.
    found = greedy_orders(STAR, sources(c=100, x=300, y=200, z=100), z=8)
    # Then {c, y}, 200: z costs 200·8 + 200·1 = 1,800, x costs 200·1 + 600·8 = 5,000.
    assert found["q/c"] == "c y z x"


def test_the_lookahead_takes_the_least_parallel_follower() -> None:
    # From c, N = (x 1, y 4, z 4): x first 100·1 + 300·4 = 1,300; y first 100·4 + 200·min(1, 4) = 600;
    # z first 100·4 + 100·min(1, 4) = 500. With the largest follower z would cost 800 and y 1,200.
    found = greedy_orders(STAR, sources(c=100, x=300, y=200, z=100), y=4, z=4)
    assert found["q/c"].startswith("c z")


def test_a_cross_product_waits_until_nothing_connected_is_left() -> None:
    asked = query("q", {"r": "r", "s": "s", "t": "t", "one": "one"}, ["r.k = s.k", "s.k = t.k"], tables={"one"})
    known = (*sources(r=100, s=100, t=100), table("one", rows=1))
    assert greedy_orders(asked, known) == {"q/r": "r s t one", "q/s": "s r t one", "q/t": "t s r one"}


def test_ties_fall_by_source_whatever_the_aliases() -> None:
    one = query("q", {"m": "r", "z": "s", "a": "t"}, ["m.k = z.k", "m.k = a.k"])
    assert greedy_orders(one, sources(r=10, s=10, t=10))["q/m"] == "m z a"


@pytest.mark.parametrize("from_order", [("r", "s", "t"), ("t", "s", "r"), ("s", "t", "r")])
def test_from_order_does_not_matter_to_greedy(from_order: tuple[str, ...]) -> None:
    asked = query("q", {name: name for name in from_order}, ["r.k = s.k", "s.k = t.k"])
    found = greedy_orders(asked, sources(r=30, s=10, t=20))
    assert found == {"q/r": "r s t", "q/s": "s t r", "q/t": "t s r"}
