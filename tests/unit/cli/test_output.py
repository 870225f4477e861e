"""What the three outputs say about the same run."""

from __future__ import annotations

import io
import json
import os
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from plait.adapt.decision import Change, Outcome
from plait.cli.output import JsonOutput, Output, PlainOutput, RunInfo
from plait.cli.output.figures import duration, epoch_words, instant, latency_line, outcome_words, rate, size
from plait.cli.output.live import LiveOutput
from plait.cli.output.plain import summary_lines
from plait.runtime.batch.events import BatchEvent, Summary
from plait.runtime.losses.counts import BadCount, RelationCounts, SourceCounts
from plait.runtime.notice import Notice
from plait.state.model import NullKey
from plait.stats.latency import Latency

INFO = RunInfo(script="late.sql", strategy="greedy", checkpoint="/data/late.checkpoint", queries=("late", "early"))
BATCH = BatchEvent(
    batch=7,
    rows_in=3000,
    late=2,
    bad=1,
    results=(("early", 0), ("late", 1234)),
    epoch=0,
    probe_tuples=4500,
    shuffled_bytes=2_300_000,
    stored_tuples=9000,
    stored_bytes=1_500_000,
    seconds=1.5,
    watermark_us=1_359_349_200_000_000,
    laggard="items",
    failing=(("early", "disk full"),),
)
SUMMARY = Summary(
    batches=1,
    rows_in=3000,
    late=2,
    bad=1,
    wall_seconds=2.0,
    probe_tuples=4500,
    shuffled_bytes=2_300_000,
    stored_tuples=9000,
    stored_bytes=1_500_000,
    queries=(("early", 0), ("late", 1234)),
    failing=(("early", "disk full"),),
)


def play(output: Output) -> None:
    with output:
        output.starting(INFO)
        output.batch(BATCH)
        output.stopping()
        output.finished(SUMMARY)


LATENCY = Latency(batches=9, p50_seconds=0.31, p99_seconds=0.9, unknown=("clicks",))


def test_latency_is_shown_with_every_batch_and_at_the_end_and_unknown_arrivals_are_named() -> None:
    batch, summary = replace(BATCH, latency=LATENCY), replace(SUMMARY, latency=LATENCY)
    stream = io.StringIO()
    with JsonOutput(stream) as output:
        output.batch(batch)
        output.finished(summary)
    said = {"batches": 9, "p50_seconds": 0.31, "p99_seconds": 0.9, "unknown": ["clicks"]}
    assert [json.loads(line)["latency"] for line in stream.getvalue().splitlines()] == [said, said]
    stream = io.StringIO()
    with PlainOutput(stream) as plain:
        plain.batch(batch)
        plain.finished(summary)
    assert "latency p50 0.31 s, p99 0.90 s" in stream.getvalue().splitlines()[0]
    end = "latency: p50 0.31 s, p99 0.90 s from arrival to publication, over the last 9 batches; when rows of clicks"
    assert end in stream.getvalue()
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with LiveOutput(console) as live:
        live.starting(INFO)
        live.batch(batch)
        console.print(live._render())
    assert "p50 0.31 s, p99 0.90 s" in console.file.getvalue()  # type: ignore[attr-defined]


def test_where_no_arrival_is_known_no_latency_is_shown() -> None:
    once = Latency(batches=1, p50_seconds=0.5, p99_seconds=0.5)
    assert latency_line(once) == "latency: p50 0.50 s, p99 0.50 s from arrival to publication, over the last batch"
    assert latency_line(None) == latency_line(Latency()) == ""
    assert latency_line(Latency(unknown=("s", "t"))) == "latency: when rows of s, t arrived is not known"


def test_json_is_one_object_a_line_ending_with_the_totals() -> None:
    stream = io.StringIO()
    play(JsonOutput(stream))
    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [event["event"] for event in events] == ["starting", "batch", "stopping", "finished"]
    assert events[1]["shuffled_bytes"] == events[-1]["shuffled_bytes"] == 2_300_000
    assert events[1]["results"] == {"early": 0, "late": 1234}
    assert events[-1]["queries"] == {"early": {"rows_out": 0}, "late": {"rows_out": 1234}}


def test_plain_text_is_one_line_a_batch_with_what_is_wrong_in_it() -> None:
    stream = io.StringIO()
    play(PlainOutput(stream))
    line = next(line for line in stream.getvalue().splitlines() if line.startswith("batch 7"))
    for part in (
        "3,000 rows",
        "2,000 rows/s",
        "late +1,234",
        "late 2",
        "bad 1",
        "early FAILS: disk full",
        "items",
        "shuffled 2.3 MB",
    ):
        assert part in line
    assert "early +0" not in line


def test_plain_text_ends_with_results_of_every_query_and_what_was_not_delivered() -> None:
    stream = io.StringIO()
    play(PlainOutput(stream))
    text = stream.getvalue()
    assert "late: 1,234 results" in text
    assert "probe tuples 4,500, shuffled 2.3 MB, stored" in text
    assert "early: results not delivered: disk full" in text


def test_what_a_console_sink_prints_does_not_mix_with_json(capsys: pytest.CaptureFixture[str]) -> None:
    with JsonOutput(sys.stdout) as output:
        print("+---+")
        output.batch(BATCH)
    printed = capsys.readouterr()
    assert [json.loads(line)["event"] for line in printed.out.splitlines()] == ["batch"]
    assert printed.err == "+---+\n"


@pytest.mark.parametrize("kind", [JsonOutput, PlainOutput])
def test_a_reader_that_goes_away_fails_nothing_and_is_noticed(kind: type[JsonOutput] | type[PlainOutput]) -> None:
    reading, writing = os.pipe()
    with open(writing, "w") as stream:
        output = kind(stream)
        output.starting(INFO)
        assert not output.is_abandoned
        os.close(reading)
        output.batch(BATCH)
        assert output.is_abandoned
        output.finished(SUMMARY)


def test_the_live_table_shows_queries_totals_and_the_last_batch() -> None:
    stream = io.StringIO()
    play(LiveOutput(Console(file=stream, force_terminal=True, width=100, height=40, legacy_windows=False)))
    text = stream.getvalue()
    for part in (
        "late.sql",
        "strategy greedy",
        "+1,234",
        "2013-01-28 05:00:00Z",
        "items",
        "disk full",
        "1.5 MB",
        "2.3 MB",
    ):
        assert part in text


def test_the_live_table_adds_up_batches() -> None:
    stream = io.StringIO()
    output = LiveOutput(Console(file=stream, force_terminal=True, width=100, height=40, legacy_windows=False))
    with output:
        output.starting(INFO)
        output.batch(BATCH)
        output.batch(BATCH)
    assert "2,468" in stream.getvalue()
    assert "2 batches" in stream.getvalue()


MANY = tuple((f"q{number:03}", number) for number in range(500))


def test_of_hundreds_of_queries_the_busiest_are_named_and_all_are_counted() -> None:
    failing = tuple((f"q{number:03}", "disk full") for number in range(9))
    batch = replace(BATCH, results=MANY, failing=failing)
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    with LiveOutput(console) as output:
        output.starting(replace(INFO, queries=tuple(query for query, _ in MANY)))
        output.batch(batch)
        console.print(output._render())
    assert isinstance(console.file, io.StringIO)
    table = console.file.getvalue()
    assert "q499" in table
    assert "q400" not in table
    assert "485 others" in table
    assert f"+{sum(range(500)):,}" in table
    assert "4 queries more" in table
    stream = io.StringIO()
    with PlainOutput(stream) as plain:
        plain.batch(batch)
        plain.finished(replace(SUMMARY, queries=MANY))
    line, *summary = stream.getvalue().splitlines()
    assert "q499 +499" in line
    assert f"487 other queries +{sum(range(488)):,}" in line
    assert "4 queries more FAIL" in line
    assert f"  400 other queries: {sum(range(400)):,} results" in summary


@pytest.mark.parametrize(("number", "said"), [(16, "1 other"), (17, "2 others")])
def test_one_query_that_is_not_named_is_said_to_be_one(number: int, said: str) -> None:
    results = MANY[1 : number + 1]
    console = Console(file=io.StringIO(), force_terminal=False, width=100)
    live = LiveOutput(console)
    live.starting(replace(INFO, queries=tuple(query for query, _ in results)))
    live.batch(replace(BATCH, results=results, failing=(("q001", "disk full"),) * 6))
    console.print(live._render())
    assert isinstance(console.file, io.StringIO)
    assert f" {said} " in console.file.getvalue()
    assert "1 query more" in console.file.getvalue()
    stream = io.StringIO()
    with PlainOutput(stream) as plain:
        plain.batch(replace(BATCH, results=MANY[1:14]))
        plain.finished(replace(SUMMARY, queries=MANY[1:102]))
    assert "1 other query +1" in stream.getvalue()
    assert "  1 other query: 1 result" in stream.getvalue().splitlines()


def test_names_and_reasons_with_brackets_are_shown_as_they_are() -> None:
    console = Console(file=io.StringIO(), force_terminal=False, width=100)
    live = LiveOutput(console)
    live.starting(INFO)
    live.batch(replace(BATCH, results=(("a[/b]", 1),), failing=(("a[/b]", "cannot write [/data/out] [bold]today"),)))
    console.print(live._render())
    assert isinstance(console.file, io.StringIO)
    assert "a[/b]: cannot write [/data/out] [bold]today" in console.file.getvalue()


def test_numbers_read_well_at_their_limits() -> None:
    assert rate(10, 0) == "- rows/s"
    assert (size(0), size(999), size(1000), size(10**15)) == ("0 B", "999 B", "1.0 kB", "1000.0 TB")
    assert (duration(59.94), duration(60), duration(3600)) == ("59.9 s", "1 min 0 s", "1 h 0 min")
    assert (instant(None), instant(-1_000_000)) == ("-", "1969-12-31 23:59:59Z")
    assert instant(10**18).endswith("us")


def test_nothing_is_said_of_shuffled_bytes_where_nothing_is_shuffled() -> None:
    stream = io.StringIO()
    output = PlainOutput(stream)
    output.batch(replace(BATCH, shuffled_bytes=0))
    output.finished(replace(SUMMARY, shuffled_bytes=0))
    assert "shuffled" not in stream.getvalue()


LOST = SourceCounts(
    source="orders",
    rows=20,
    late=2,
    bad=(
        BadCount(reason="malformed", rows=3, sample="1,NA\n", column="qty", hint="OPTIONS (nullValue 'NA')"),
        BadCount(reason="no event time", rows=1),
    ),
    outside=4,
    null_keys=5,
    null_keys_by=(NullKey(key="lower(`id`)", rows=6),),
)
WARNING = Notice(kind="event times", of="orders", text="stream 'orders' has an event time in the year 57,000")
TOLD = replace(SUMMARY, sources=(LOST,), warnings=(WARNING,), hints=(("early", "no result: nothing has arrived"),))


def test_the_summary_says_which_rows_came_to_nothing_why_and_what_to_do() -> None:
    lines = summary_lines(TOLD)
    after = lines[lines.index("Rows that came to nothing:") :]
    assert after == [
        "Rows that came to nothing:",
        "  orders: 3 bad rows: malformed, column 'qty', such as: 1,NA",
        "    OPTIONS (nullValue 'NA')",
        "  orders: 1 bad row: no event time",
        "  orders: 4 rows outside the selections of all queries",
        "  orders: 6 rows with NULL in lower(id), which equals nothing",
        "warning: stream 'orders' has an event time in the year 57,000",
    ]
    assert lines[lines.index("  early: 0 results") + 1] == "    no result: nothing has arrived"
    assert "came to nothing" not in "\n".join(summary_lines(SUMMARY))


def test_a_warning_goes_to_standard_error_when_it_comes_and_stands_in_the_live_table() -> None:
    event, shown, said = replace(BATCH, sources=(LOST,), warnings=(WARNING,)), io.StringIO(), io.StringIO()
    PlainOutput(shown, said).batch(event)
    assert said.getvalue() == f"warning: {WARNING.text}\n"
    assert "bad 1 (orders malformed 3, orders no event time 1)" in shown.getvalue()
    drawn = io.StringIO()
    console = Console(file=drawn, force_terminal=True, width=120, height=40, legacy_windows=False)
    with LiveOutput(console) as output:
        output.starting(INFO)
        output.batch(event)
    for part in ("year 57,000", "outside selections", "NULL keys", "orders malformed 3"):
        assert part in drawn.getvalue()


def test_json_has_losses_warnings_and_hints_beside_what_it_always_had() -> None:
    stream = io.StringIO()
    output = JsonOutput(stream)
    relations = (RelationCounts(query="early", alias="o", source="orders", rows=14, outside=9),)
    output.batch(replace(BATCH, sources=(LOST,), relations=relations, warnings=(WARNING,)))
    output.finished(replace(TOLD, relations=relations))
    batch, finished = (json.loads(line) for line in stream.getvalue().splitlines())
    assert (batch["late"], batch["bad"], batch["outside_selections"]) == (2, 1, {"early": {"o": 9}})
    assert finished["queries"]["early"] == {
        "rows_out": 0,
        "outside_selections": {"o": 9},
        "hint": "no result: nothing has arrived",
    }
    for event in (batch, finished):
        assert event["warnings"] == [{"kind": "event times", "of": "orders", "text": WARNING.text}]
        assert event["sources"]["orders"] == {
            "rows": 20,
            "late": 2,
            "bad": [
                {
                    "reason": "malformed",
                    "rows": 3,
                    "sample": "1,NA",
                    "column": "qty",
                    "hint": "OPTIONS (nullValue 'NA')",
                },
                {"reason": "no event time", "rows": 1, "sample": "", "column": None, "hint": None},
            ],
            "outside_selections": 4,
            "null_keys": 5,
            "null_keys_by": {"lower(id)": 6},
        }


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [(100.0, 75.0, " (cheaper, saves 25%)"), (100.0, 110.0, " (cheaper, costs 10% more)"), (None, 5.0, " (cheaper)")],
)
def test_a_batch_that_begins_with_another_plan_says_why_and_what_that_is_to_save(
    before: float | None, after: float, words: str
) -> None:
    change = Change(reason="cheaper", changes=(), cost_before=before, cost_after=after)
    stream = io.StringIO()
    PlainOutput(stream).batch(replace(BATCH, epoch=2, change=change))
    assert f"epoch 2{words}  " in stream.getvalue()
    assert replace(BATCH, change=change).as_json()["change"]["gain"] == change.as_json()["gain"]


def test_programs_are_told_of_a_change_of_plan_and_of_what_the_last_one_brought() -> None:
    change = Change(reason="cheaper", changes=(), cost_before=100.0, cost_after=75.0, change_cost=50.0, horizon_s=30.0)
    outcome = Outcome(forecast=75.0, measured=80.0, before=100.0, taken_back=False)
    stream = io.StringIO()
    with JsonOutput(stream) as output:
        output.batch(replace(BATCH, epoch=2, change=change, outcome=outcome))
    brought, plan, batch = map(json.loads, stream.getvalue().splitlines())
    assert (brought["event"], brought["forecast"], brought["measured"], brought["gain"]) == (
        "plan_outcome",
        75.0,
        80.0,
        0.2,
    )
    assert (plan["event"], plan["reason"], plan["forecast"], plan["gain"], plan["cost"]) == (
        "plan",
        "cheaper",
        75.0,
        0.25,
        50.0,
    )
    assert (batch["event"], batch["epoch"]) == ("batch", 2)


def test_people_are_told_how_long_a_plan_is_in_force_and_what_it_saves() -> None:
    assert epoch_words(replace(BATCH, epoch=3, epoch_ms=90_000, epoch_gain=0.25)) == "3 for 1 min 30 s, saves 25%"
    assert epoch_words(replace(BATCH, epoch=3, epoch_ms=1_000, epoch_gain=-0.1)) == "3 for 1.0 s, costs 10% more"
    assert epoch_words(replace(BATCH, epoch=1, epoch_ms=1_000)) == "1 for 1.0 s"
    outcome = Outcome(forecast=75.0, measured=80.0, before=100.0, taken_back=False)
    assert outcome_words(outcome) == " (last change: measured to save 20%)"
    assert outcome_words(replace(outcome, measured=110.0)) == " (last change: measured to cost 10% more)"
    assert outcome_words(None) == ""


def test_what_a_start_had_to_say_is_told_once_to_people_and_in_every_place_to_programs() -> None:
    resting = Notice(kind="rows not needed", of="items", text="no query needs the 5 stored rows of 'items' now")
    event, summary = replace(BATCH, warnings=(resting, WARNING)), replace(SUMMARY, warnings=(resting, WARNING))
    shown, said = io.StringIO(), io.StringIO()
    with PlainOutput(shown, said) as plain:
        plain.noticed(resting.text)
        plain.batch(event)
        assert (shown.getvalue() + said.getvalue()).count(resting.text) == 1
        plain.finished(summary)
    assert said.getvalue() == f"warning: {WARNING.text}\n"
    assert f"\nnote: {resting.text}\n" in shown.getvalue()
    written = io.StringIO()
    with JsonOutput(written) as output:
        output.noticed(resting.text)
        output.batch(event)
        output.finished(summary)
    notice, *others = (json.loads(line) for line in written.getvalue().splitlines())
    assert notice == {"event": "notice", "text": resting.text}
    assert [[each["text"] for each in other["warnings"]] for other in others] == [[resting.text, WARNING.text]] * 2
