"""What Prometheus is told."""

from __future__ import annotations

import re
from typing import Any

from plait.server.metrics import metrics_text

STATUS: dict[str, Any] = {
    "running": True,
    "streams": ["orders", 'it"ems\\'],
    "lag": {"orders": {"t-0": 5, "t-1": 0}},
    "last_batch": {
        "batch": 7,
        "seconds": 0.25,
        "phases": {"ingest": 0.1, "probe": 0.15},
        "stored_tuples": 30,
        "stored_bytes": 4096,
        "epoch": 2,
        "epoch_ms": 1500,
        "watermark_us": 1_767_261_600_500_000,
        "laggard": "orders",
        "latency": {"p50_seconds": 0.2, "p99_seconds": None},
    },
    "totals": {
        "batches": 8,
        "rows_in": 100,
        "probe_tuples": 250,
        "sampled_tuples": 1,
        "filling_tuples": 0,
        "shuffled_bytes": 0,
        "sources": {
            "orders": {
                "rows": 60,
                "late": 2,
                "bad": [{"reason": "no event time", "rows": 3}],
                "outside_selections": 4,
                "null_keys": 1,
            }
        },
    },
}
QUERIES = [
    {"name": "soon", "state": "active", "rows_out": 12},
    {"name": "late", "state": "set aside", "rows_out": 0},
]
_SAMPLE = re.compile(r'([a-z_]+)(\{(?:[a-z]+="(?:[^"\\\n]|\\.)*",?)+\})? (-?\d+(?:\.\d+)?(?:e[+-]\d+)?)')


def samples(text: str) -> dict[str, float]:
    """Read the text format strictly: each metric has its help and type once, before its samples."""
    found: dict[str, float] = {}
    kinds: dict[str, str] = {}
    helped: set[str] = set()
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name, _, help_ = line[7:].partition(" ")
            assert name not in helped
            assert help_.endswith(".")
            helped.add(name)
        elif line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            assert name in helped
            assert (kind == "counter") == name.endswith("_total")
            kinds[name] = kind
        else:
            match = _SAMPLE.fullmatch(line)
            assert match, line
            assert match[1] in kinds
            assert line not in found
            found[match[1] + (match[2] or "")] = float(match[3])
    return found


def test_every_number_has_its_name_unit_and_help() -> None:
    told = samples(metrics_text(STATUS, QUERIES))
    assert told["plait_batches_total"] == 8
    assert told["plait_last_batch_seconds"] == 0.25
    assert told['plait_last_batch_phase_seconds{phase="probe"}'] == 0.15
    assert told["plait_epoch_age_seconds"] == 1.5
    assert told["plait_watermark_timestamp_seconds"] == 1_767_261_600.5
    assert told['plait_stream_late_rows_total{stream="orders"}'] == 2
    assert told['plait_stream_bad_rows_total{stream="orders",reason="no event time"}'] == 3
    assert told['plait_stream_lag_records{stream="orders",partition="t-0"}'] == 5
    assert told['plait_query_results_total{query="soon"}'] == 12
    assert told['plait_queries{state="set_aside"}'] == 1
    assert told['plait_result_latency_seconds{quantile="0.5"}'] == 0.2
    assert 'plait_result_latency_seconds{quantile="0.99"}' not in told


def test_names_are_escaped() -> None:
    told = samples(metrics_text(STATUS, QUERIES))
    assert told['plait_stream_holds_watermark{stream="it\\"ems\\\\"}'] == 0
    assert told['plait_stream_holds_watermark{stream="orders"}'] == 1


def test_before_the_first_batch_there_is_nothing_to_tell_of_one() -> None:
    told = samples(metrics_text({**STATUS, "last_batch": None, "lag": {}}, []))
    assert told["plait_running"] == 1
    assert "plait_last_batch_seconds" not in told
    assert "plait_stored_bytes" not in told
