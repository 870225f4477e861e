"""The generated streams have the properties their workloads are about."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.workloads import chains, drift, nexmark_data, skew, tpcds_returns
from benchmarks.workloads.case import Request
from benchmarks.workloads.data import FIRST_US
from benchmarks.workloads.stored import generator, slices
from benchmarks.workloads.tpcds_returns import ORDERS, STREAMS, USUAL, returns_query
from plait.errors import OptionError


def counts(rows: pa.Table, column: str) -> np.ndarray:
    return np.sort(np.unique(rows[column].to_numpy(), return_counts=True)[1])[::-1]


def partners(left: pa.Table, right: pa.Table, column: str) -> float:
    """Return the rows of the right that a row of the left agrees with, on average."""
    ours, theirs = (table[column].to_numpy() for table in (left, right))
    values, found = np.unique(theirs, return_counts=True)
    places = np.minimum(np.searchsorted(values, ours), len(values) - 1)
    return float(np.where(values[places] == ours, found[places], 0).mean())


def test_rows_out_of_order_or_outside_the_span_are_refused():
    rows = pa.table({"t": pa.array([FIRST_US + 5, FIRST_US + 4], pa.timestamp("us", "UTC"))})
    with pytest.raises(OptionError, match="sorted"):
        list(slices(rows, "t", 2, 1))
    with pytest.raises(OptionError, match="within"):
        list(slices(rows.slice(0, 1), "t", 2, 0.000004))


def test_letters_say_how_many_partners_a_row_has():
    made = {stream.name: rows for stream, rows in chains.make_streams(chains.ChainInput(letters="HMLM", rows=20_000))}
    assert partners(made["c1"], made["c2"], "k1") == pytest.approx(10, rel=0.05)
    assert partners(made["c2"], made["c3"], "k2") == pytest.approx(1, rel=0.05)
    assert partners(made["c3"], made["c4"], "k3") == pytest.approx(0.1, rel=0.2)


def test_selectivities_change_places_in_the_middle():
    made = {stream.name: rows for stream, rows in drift.make_streams(drift.DriftInput(rows=40_000))}
    middle = FIRST_US + drift.SPAN_S * 500_000
    halves = []
    for rows in made.values():
        place = int(np.searchsorted(rows["ts"].cast(pa.int64()).to_numpy(), middle))
        halves.append((rows.slice(0, place), rows.slice(place)))
    share_of_half = 2 * drift.WINDOW_S / (drift.SPAN_S / 2)
    for half, (first, last) in enumerate(((10, 0.1), (0.1, 10))):
        c1, c2, c3, c4 = (rows[half] for rows in halves)
        assert partners(c1, c2, "k1") * share_of_half == pytest.approx(first, rel=0.1)
        assert partners(c2, c3, "k2") * share_of_half == pytest.approx(1, rel=0.1)
        assert partners(c3, c4, "k3") * share_of_half == pytest.approx(last, rel=0.1)


@pytest.mark.parametrize(("exponent", "share"), [(0, 1 / 2000), (1, 0.122), (2, 0.608)])
def test_the_most_frequent_key_has_its_share_by_zipf(exponent: float, share: float):
    made = {stream.name: rows for stream, rows in skew.make_streams(skew.SkewInput(exponent=exponent, rows=20_000))}
    assert counts(made["c1"], "k1")[0] / 20_000 == pytest.approx(share, rel=0.1, abs=0.001)
    assert set(counts(made["c2"], "k1")) == set(counts(made["c2"], "k2")) == {skew.ROWS_PER_KEY}


def test_nexmark_has_its_proportions_and_its_hot_ones():
    made = {stream.name: rows for stream, rows in nexmark_data.make_streams(nexmark_data.NexmarkInput(events=100_000))}
    assert {name: rows.num_rows for name, rows in made.items()} == {"person": 2000, "auction": 6000, "bid": 92_000}
    assert made["person"]["p_id"].to_pylist() == list(range(1000, 3000))
    assert made["auction"]["a_id"].to_pylist() == list(range(1000, 7000))
    assert np.mean(made["auction"]["a_seller"].to_numpy() % 100 == 0) == pytest.approx(0.75, abs=0.02)
    assert np.mean(made["bid"]["b_bidder"].to_numpy() % 100 == 1) == pytest.approx(0.75, abs=0.02)
    assert np.mean(made["bid"]["b_auction"].to_numpy() % 100 == 0) == pytest.approx(0.5, abs=0.02)
    assert set(made["auction"]["a_category"].to_pylist()) == {10, 11, 12, 13, 14}
    assert np.all(made["auction"]["a_reserve"].to_numpy() > made["auction"]["a_initial"].to_numpy())


def test_all_orders_are_asked_if_wanted(tmp_path, monkeypatch):
    monkeypatch.setattr(tpcds_returns, "make_streams", lambda wanted: iter(()))
    usual = Request(sizes=(1.0,), directory=tmp_path)
    everything = Request(sizes=(1.0,), directory=tmp_path, variants="all")
    assert [case.name[:8] for case in tpcds_returns.cases(usual)] == list(USUAL)
    assert [case.name[:8] for case in tpcds_returns.cases(everything)] == list(ORDERS)
    assert len(ORDERS) == 24
    assert returns_query("WrCuCrSr").relations == ("web_returns", "customer", "catalog_returns", "store_returns")


def test_tpcds_rows_come_in_random_order():
    rows = pa.table(
        {
            "c_current_addr_sk": pa.array(range(1000), pa.int32()),
            "c_customer_sk": pa.array(range(1000), pa.int32()),
            "c_birth_year": pa.array([1970] * 1000, pa.int32()),
        }
    )
    mixed = tpcds_returns.as_stream(STREAMS[0], rows, generator(7, "customer"))
    assert mixed["c_nr"].to_pylist() == list(range(1000))
    assert mixed["c_customer_sk"].to_pylist() != list(range(1000))
    assert sorted(mixed["c_customer_sk"].to_pylist()) == list(range(1000))
    assert mixed["c_customer_sk"] == mixed["c_current_addr_sk"]
