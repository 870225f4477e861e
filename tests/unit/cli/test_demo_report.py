"""What the demo says at its end."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from plait.cli.demo_report import Sharing, shares_of_queries, show_answers, show_run, show_sharing, steps_of
from plait.cli.execution import Outcome
from plait.runtime.batch.events import Summary
from plait.workloads.questions import QUESTIONS, Question, read_answer

STEP = {"edge": "e1", "steps": [{"edge": "e2", "steps": []}]}
PLAN = {
    "stores": [{"id": "r"}, {"id": "s"}],
    "trees": [{"steps": [STEP]}, {"steps": []}],
    "comparison": {"plans": [{"strategy": "independent", "stores": 5}, {"strategy": "shared", "stores": 2}]},
    "queries": [
        {
            "name": "late",
            "orders": [
                {
                    "relations": ["o", "i"],
                    "steps": [{"edge": "e1", "shared_with": ["early"]}, {"edge": "e2", "shared_with": []}],
                }
            ],
        }
    ],
}
DELAYS = Question(query="delays", asks="Who was late?", columns=("at", "delay", "note"), worst="delay")


def test_what_the_queries_share_is_said_beside_what_they_would_keep_each_by_itself() -> None:
    out = io.StringIO()
    show_sharing(Console(file=out, width=100), PLAN)
    assert "1 query over 2 relations keep 2 stores instead of 5, and need 2 steps, of which 2 are different" in (
        out.getvalue()
    )


def write(folder: Path, delays: list[int]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    at = [datetime(2013, 2, 8, 12, minute, tzinfo=timezone.utc) for minute in range(len(delays))]
    table = pa.table({"at": at, "delay": delays, "note": [None] * len(delays)})
    pq.write_table(table, folder / f"part-{len(list(folder.iterdir()))}.parquet")


def test_sharing_counts_steps_and_names_the_other_queries() -> None:
    assert shares_of_queries(PLAN) == [
        Sharing(query="late", relations=2, steps=2, shared_steps=1, with_queries=("early",))
    ]
    assert steps_of(PLAN) == 2


def test_an_answer_counts_all_files_and_shows_the_worst_first(tmp_path: Path) -> None:
    write(tmp_path / "out" / "delays", [5, 90])
    write(tmp_path / "out" / "delays", [60])
    answer = read_answer(DELAYS, tmp_path, sample=2)
    assert answer.results == 3
    assert answer.sample == (("Feb 08 12:01", "90", ""), ("Feb 08 12:00", "60", ""))


def test_results_still_hidden_are_not_counted(tmp_path: Path) -> None:
    write(tmp_path / "out" / "delays", [5])
    write(tmp_path / "out" / "delays" / "_staging", [6])
    assert read_answer(DELAYS, tmp_path, sample=1).results == 1


def test_no_folder_and_an_empty_folder_are_no_results(tmp_path: Path) -> None:
    assert read_answer(DELAYS, tmp_path, sample=3).results == 0
    (tmp_path / "out" / "delays" / "_staging").mkdir(parents=True)
    assert read_answer(DELAYS, tmp_path, sample=3).results == 0


def test_answers_are_printed_with_question_count_and_rows(tmp_path: Path) -> None:
    write(tmp_path / "out" / "delays", [5, 1234])
    out = io.StringIO()
    show_answers(Console(file=out, width=100), [read_answer(DELAYS, tmp_path, sample=1)])
    text = out.getvalue()
    assert "Who was late?" in text
    assert "delays: 2 results" in text
    assert "1234" in text


def test_short_columns_are_not_cut_in_a_narrow_terminal(tmp_path: Path) -> None:
    write(tmp_path / "out" / "delays", [5])
    answer = read_answer(DELAYS, tmp_path, sample=1)
    long = replace(answer, sample=(("Feb 08 12:00", "1234", "a note that goes on and on " * 4),))
    out = io.StringIO()
    show_answers(Console(file=out, width=40), [long])
    assert "Feb 08 12:00  1234 " in out.getvalue()
    assert "…" in out.getvalue()


def shown(*, batches: int, is_stopped: bool) -> str:
    summary = Summary(
        batches=batches,
        rows_in=3000 * batches,
        late=0,
        bad=0,
        wall_seconds=1.5,
        probe_tuples=0,
        stored_tuples=0,
        stored_bytes=0,
        queries=(),
    )
    out = io.StringIO()
    show_run(Console(file=out, width=100), Outcome(summary=summary, is_stopped=is_stopped, plan={}))
    return out.getvalue()


def test_a_run_says_what_it_cost_and_whether_there_is_more_to_do() -> None:
    assert "nothing new" in shown(batches=0, is_stopped=False)
    assert "2,000 rows/s" in shown(batches=1, is_stopped=False)
    assert "latency counts the wait" in shown(batches=1, is_stopped=False)
    assert "goes on from here" in shown(batches=1, is_stopped=True)
    assert "nothing new" not in shown(batches=0, is_stopped=True)


def test_every_question_is_a_query_of_the_script_and_shows_columns_it_selects() -> None:
    script = (Path(__file__).parents[3] / "plait" / "workloads" / "flights.sql").read_text()
    queries = {part.split()[0]: part for part in script.split("CREATE QUERY ")[1:]}
    assert sorted(queries) == sorted(question.query for question in QUESTIONS)
    for question in QUESTIONS:
        assert question.worst in question.columns
        for column in question.columns:
            assert column in queries[question.query]
