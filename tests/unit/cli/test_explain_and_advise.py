"""`plait explain` with what was measured, and `plait advise`: what they print without Spark."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from plait.cli.advice_text import FORMATS, how_to_tell
from plait.cli.plan_options import plan_options
from plait.cli.script import read_script_file
from plait.optimizer import plan
from plait.optimizer.advise.advice import advise
from plait.optimizer.advise.unknowns import Unknown
from plait.runtime.sampling import SampledSource
from plait.stats.declared import declared_statistics
from plait.stats.model import SourceStatistics, Statistics
from tests.random_joins import RandomJoins, draw
from tests.unit.cli.test_commands import plait
from tests.unit.runtime.checkpoint.test_observed import Checkpoint

SCRIPT = """
CREATE STREAM r (a BIGINT, v INT, ts TIMESTAMP) USING mine OPTIONS (rate '10', distinct.a '20')
  TIMESTAMP BY ts WINDOW INTERVAL 10 SECONDS;
CREATE STREAM s (a BIGINT, b BIGINT, ts TIMESTAMP) USING mine OPTIONS (rate '20')
  TIMESTAMP BY ts WINDOW INTERVAL 10 SECONDS;
CREATE STREAM t (b BIGINT, w INT, ts TIMESTAMP) USING mine TIMESTAMP BY ts WINDOW INTERVAL 1 MINUTE;
CREATE QUERY rs INTO noop AS SELECT r.a FROM r JOIN s ON r.a = s.a;
CREATE QUERY rst INTO noop AS SELECT r.a, t.w FROM r JOIN s ON r.a = s.a JOIN t ON s.b = t.b WHERE t.w > 3;
CREATE QUERY st INTO noop AS SELECT s.b FROM s JOIN t ON s.b = t.b;
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "asked.sql"
    file.write_text(SCRIPT)
    return file


def test_explain_shows_the_plan_beside_the_baselines(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plait(monkeypatch, "explain", str(script), "--strategy", "ilp", "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert [each["strategy"] for each in document["comparison"]["plans"]] == ["independent", "shared"]
    assert document["comparison"]["assumed"][0].startswith("the rate of t")
    assert document["measured"] is None
    assert document["solution"]["gap"] >= 0
    assert plait(monkeypatch, "explain", str(script)) == 0
    text = capsys.readouterr().out
    assert "nothing has been measured yet" in text
    table = [line.split()[0] for line in text.split("\n\n")[1].splitlines()[1:4]]
    assert table == ["this", "independent", "shared"]


def test_explain_says_what_is_kept_of_queries_that_group_and_when_their_windows_are_over(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    window = "window(r.ts, '10 minutes', '4 minutes')"
    script.write_text(
        f"{SCRIPT}CREATE QUERY sums INTO noop AS SELECT window.start, sum(r.v) FROM r JOIN s ON r.a = s.a "
        f"GROUP BY {window};\nCREATE QUERY spread INTO noop AS SELECT stddev(v) FROM r GROUP BY window(ts, '1 hour');\n"
    )
    assert plait(monkeypatch, "explain", str(script)) == 0
    text = capsys.readouterr().out
    assert "partial aggregates are kept for every 2 min of event time until their windows are over" in text
    assert "the joined rows are kept until their windows are over" in text
    assert "once the watermark has come 10 s beyond its end" in text
    assert plait(monkeypatch, "explain", str(script), "--query", "spread", "--format", "json") == 0
    (closing,) = json.loads(capsys.readouterr().out)["closing"]
    assert (closing["query"], closing["groups"]["keeps"]) == ("spread", "joined rows")


OUTER = """
CREATE STREAM wide (a BIGINT, ts TIMESTAMP) USING mine OPTIONS (rate '5') TIMESTAMP BY ts WINDOW UNBOUNDED;
CREATE QUERY lone INTO noop AS SELECT r.a FROM r LEFT ANTI JOIN s ON r.a = s.a;
CREATE QUERY seen INTO noop AS SELECT r.a FROM r LEFT SEMI JOIN wide ON r.a = wide.a;
CREATE QUERY hourly INTO noop AS SELECT r.a, sum(r.v) FROM r GROUP BY window(r.ts, '1 hour'), r.a;
CREATE QUERY spread INTO noop AS SELECT stddev(v) FROM r GROUP BY window(ts, '1 hour');
"""


def test_advice_says_what_waits_what_a_shorter_window_spares_and_what_is_kept_for_ever(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script.write_text(SCRIPT + OUTER)
    assert plait(monkeypatch, "advise", str(script)) == 0
    section = capsys.readouterr().out.split("What waits, and for how long\n")[1].split("\n\n")[0]
    rows = [line.split() for line in section.splitlines()]
    assert ["lone", "r", "10", "s", "100"] in rows
    assert ["lone", "s", "20", "s", "400"] in rows
    assert ["seen", "wide", "ever", "+", "300", "rows/min"] in rows
    assert "lone would keep 150 rows fewer with half the window of r (5 s instead of 10 s)" in section
    assert "Rows of wide never close for seen, so all are kept: give the stream a WINDOW" in section
    # 20 keys, in the pane that is over and the one that is open; stddev keeps ten rows a second for an hour.
    assert "at most 40" in section
    assert "at most 36,000" in section
    assert "spread keeps each joined row until its windows are over, because stddev cannot be put together" in section


def test_advice_on_what_waits_is_in_json_too(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script.write_text(SCRIPT + OUTER)
    assert plait(monkeypatch, "advise", str(script), "--format", "json") == 0
    waiting = json.loads(capsys.readouterr().out)["waiting"]
    kept = {(each["query"], each["relation"]): (each["kept_us"], each["rows"]) for each in waiting["kept"]}
    assert kept["lone", "s"] == (20_000_000, 400)
    assert kept["seen", "wide"] == (None, None)
    assert [(each["query"], each["relation"], each["spared_rows_at_half"]) for each in waiting["shorter_windows"]] == [
        ("lone", "r", 150)
    ]
    assert {(each["query"], each["rows_at_most"]) for each in waiting["groups"]} == {("hourly", 40), ("spread", 36_000)}


def test_explain_shows_what_one_query_needs_or_one_stream_goes_through(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def shown(*arguments: str) -> dict[str, list[str]]:
        arguments = ("explain", str(script), "--strategy", "ilp", "--format", "json", *arguments)
        assert plait(monkeypatch, *arguments) == 0
        document = json.loads(capsys.readouterr().out)
        return {
            "queries": [query["name"] for query in document["queries"]],
            "starts": sorted({order["relations"][0] for query in document["queries"] for order in query["orders"]}),
            "stores": [store["id"] for store in document["stores"] if store["source"]],
            "trees": sorted({tree["start"]["store"] for tree in document["trees"]}),
        }

    assert shown("--query", "rs") == {
        "queries": ["rs"],
        "starts": ["r", "s"],
        "stores": ["r", "s"],
        "trees": ["r", "s"],
    }
    assert shown("--stream", "t")["queries"] == ["rst", "st"]
    assert shown("--stream", "t")["starts"] == shown("--stream", "t")["trees"] == ["t"]
    assert shown("--query", "rst", "--stream", "r")["starts"] == ["r"]
    assert plait(monkeypatch, "explain", str(script), "--query", "rs", "--query", "rs") == 0
    text = capsys.readouterr().out
    assert "Shown is the part of the plan that rs needs; the costs are those of all queries" in text
    assert "shared with rst" in text
    assert "store t" not in text
    assert plait(monkeypatch, "explain", str(script), "--stream", "t") == 0
    assert "Shown is the part of the plan that is used when a row of t arrives" in capsys.readouterr().out


def test_of_a_store_those_rows_are_told_of_that_the_shown_query_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "many.sql"
    asked = "CREATE QUERY q{0} INTO noop AS SELECT r.a FROM r JOIN s ON r.a = s.a WHERE r.a > {0};\n"
    file.write_text(SCRIPT.split("CREATE QUERY")[0] + "".join(asked.format(number) for number in range(20)))
    assert plait(monkeypatch, "explain", str(file), "--query", "q7") == 0
    kept = [line for line in capsys.readouterr().out.splitlines() if "keeps" in line]
    assert [line.partition("keeps")[2].strip() for line in kept] == [
        "every row where (a > 7) with a not null",
        "and for 19 reasons more",
        "every row with a not null",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--query", "rx"),
            "the plan has no query 'rx'; there are 'rs', 'rst', 'st', 'uu'; without a name all queries",
        ),
        (("--query", "RST"), "the plan has no query 'RST'; did you mean 'rst'? Without a name all queries are shown"),
        (("--stream", "rs"), "the plan has no stream 'rs'; did you mean"),
        (("--stream", "t"), "the plan has no stream 't'; there are 'r', 's', 'u'"),
        (("--query", "rs", "--stream", "u"), "rs waits for no row of u; leave --stream out"),
        (("--query", "rs", "--history"), "leave out --query and --stream"),
    ],
)
def test_a_part_that_is_not_there_is_refused(
    arguments: tuple[str, ...],
    message: str,
    script: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stream_t = "CREATE STREAM t (b BIGINT, w INT, ts TIMESTAMP) USING mine TIMESTAMP BY ts WINDOW INTERVAL 1 MINUTE;"
    table_t = "CREATE TABLE t (b BIGINT, w INT) USING mine; CREATE QUERY uu INTO noop AS SELECT c FROM u;"
    stream_u = "CREATE STREAM u (c BIGINT, ts TIMESTAMP) USING mine TIMESTAMP BY ts;"
    script.write_text(SCRIPT.replace(stream_t, stream_u + table_t))
    assert plait(monkeypatch, "explain", str(script), *arguments) == 2
    assert message in capsys.readouterr().err


@pytest.fixture
def checkpoint(script: Path, tmp_path: Path) -> Checkpoint:
    loaded = read_script_file(script).load()
    made = plan(
        loaded.queries, declared_statistics(loaded.sources), plan_options({}, loaded.sources, "greedy", parallelism=2)
    )
    found = Checkpoint(tmp_path / "kept")
    found.govern("1-a", made)
    found.batch(0, "1-a", 1_000, 10)
    return found


def test_explain_shows_what_a_checkpoint_has_measured_without_spark(
    script: Path, checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name == "pyspark" or name.startswith("pyspark.")]:
        monkeypatch.delitem(sys.modules, name)
    assert plait(monkeypatch, "explain", str(script), "--checkpoint", checkpoint.uri) == 0
    assert "pyspark" not in sys.modules
    text = capsys.readouterr().out
    assert "Measured after batch 0" in text
    assert "r→s: s on r.a = s.a, in all 2 partitions; 20 probe tuples/s (measured 100, 5.00 x more)" in text
    assert "independent" in text
    assert plait(monkeypatch, "explain", str(script), "--checkpoint", checkpoint.uri, "--format", "json") == 0
    measured = json.loads(capsys.readouterr().out)["measured"]
    assert measured["edges"]["r→s"] == {
        "probe_tuples": 1_000,
        "event_time_us": 10_000_000,
        "probe_tuples_per_s": 100.0,
    }


def test_explain_shows_the_history_of_plans_without_spark(
    script: Path, checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name == "pyspark" or name.startswith("pyspark.")]:
        monkeypatch.delitem(sys.modules, name)
    asked = ("explain", str(script), "--checkpoint", checkpoint.uri, "--history")
    assert plait(monkeypatch, *asked) == 0
    assert "No plan has been noted" in capsys.readouterr().out
    assert plait(monkeypatch, *asked, "--format", "json") == 0
    assert json.loads(capsys.readouterr().out) == {"epochs": []}
    assert plait(monkeypatch, *asked, "--format", "mermaid") == 0
    assert capsys.readouterr().out.startswith("gantt\n")
    assert plait(monkeypatch, "explain", str(script), "--history") == 2  # where `plait run` would have it, none is
    assert "there is no Plait checkpoint at" in capsys.readouterr().err
    assert "pyspark" not in sys.modules


def test_explain_says_when_the_script_has_changed_since(
    script: Path, checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for changed, words in (
        (
            SCRIPT.replace("CREATE QUERY st", "CREATE QUERY ts"),
            "for other queries than there are now (without ts and with st), so it is not compared",
        ),
        (SCRIPT.replace("t.w > 3", "t.w > 4"), "not compared: the queries have other definitions now"),
    ):
        script.write_text(changed)
        assert plait(monkeypatch, "explain", str(script), "--checkpoint", checkpoint.uri) == 0
        text = capsys.readouterr().out
        assert f"This plan is {words}" in text
        assert "independent" not in text
        assert "measured 100" in text


def test_explain_says_why_a_query_is_set_aside(
    script: Path, checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    more = "CREATE QUERY rt INTO noop AS SELECT r.a FROM r JOIN t ON r.a = t.b;"
    script.write_text(SCRIPT + more)
    asked = ("explain", str(script), "--checkpoint", checkpoint.uri, "--query", "rt")
    assert plait(monkeypatch, *asked) == 2
    assert "the plan has no query 'rt'" in capsys.readouterr().err
    noted = {"query": "rt", "definition": "d", "reason": "it overflows", "batch": 1}
    (Path(checkpoint.uri) / "plait" / "set-aside.json").write_text(json.dumps({"queries": [noted]}))
    assert plait(monkeypatch, *asked) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "query 'rt' is set aside from batch 1 on: it overflows" in text
    assert "t on r.a = t.b" in text


def test_a_checkpoint_that_is_none_is_refused_with_a_message(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plait(monkeypatch, "explain", str(script), "--checkpoint", str(script.parent / "nowhere")) == 2
    assert "there is no Plait checkpoint at" in capsys.readouterr().err


def test_advice_needs_no_spark_and_is_the_same_twice(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name == "pyspark" or name.startswith("pyspark.")]:
        monkeypatch.delitem(sys.modules, name)
    texts = []
    for _ in range(2):
        assert plait(monkeypatch, "advise", str(script), "--parallelism", "2") == 0
        texts.append(capsys.readouterr().out)
    assert "pyspark" not in sys.modules
    assert texts[0] == texts[1]
    for section in ("What sharing saves", "Intermediate stores that pay", "What each query costs", "What was assumed"):
        assert section in texts[0]
    assert "rate '...' of t, or --sample 10000" in texts[0]
    assert "What the sample showed" not in texts[0]


def test_advice_in_json_has_all_that_the_text_has(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plait(monkeypatch, "advise", str(script), "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert [each["strategy"] for each in document["plans"]] == ["independent", "shared", "dppick", "ilp"]
    assert document["best"] in {"dppick", "ilp"}
    assert {each["query"] for each in document["queries"]} == {"rs", "rst", "st"}
    assert {each["option"] for each in document["assumptions"]} >= {"rate", "distinct.b"}
    assert document["sample"] == []


STREAM = "CREATE STREAM {} (a BIGINT, ts TIMESTAMP) USING mine TIMESTAMP BY ts WINDOW INTERVAL 10 SECONDS;\n"
DEFAULT = "Best: the default, plait.strategy = dppick; to look longer, as ilp does, saves nothing"


@pytest.mark.parametrize(
    ("query", "best", "stores"),
    [
        ("SELECT a FROM r WHERE a > 1", DEFAULT, "only a query that joins three relations or more"),
        ("SELECT r.a FROM r JOIN s ON r.a = s.a", DEFAULT, "only a query that joins three relations or more"),
        ("SELECT r.a FROM r JOIN s ON r.a = s.a JOIN t ON s.a = t.a", DEFAULT, "to do these joins anew"),
    ],
)
def test_advice_on_a_single_simple_query_names_the_default_strategy(
    query: str,
    best: str,
    stores: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "simple.sql"
    file.write_text("".join(map(STREAM.format, "rst")) + f"CREATE QUERY q INTO noop AS {query};")
    assert plait(monkeypatch, "advise", str(file), "--parallelism", "2") == 0
    text = capsys.readouterr().out
    assert best in text.splitlines()
    assert f"None: {stores}" in text


def test_advice_names_the_strategy_that_saves_something(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plait(monkeypatch, "advise", str(script), "--parallelism", "2") == 0
    assert "Best: SET plait.strategy = ilp;" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--format", "xml"), "unknown format 'xml'; expected one of text, json"),
        (("--sample", "0"), "Invalid value"),
        (("--sample", "many"), "Invalid value"),
        (("--conf", "memory"), "is not a setting"),
    ],
)
def test_wrong_arguments_of_advise_end_with_status_2(
    arguments: tuple[str, ...],
    message: str,
    script: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert plait(monkeypatch, "advise", str(script), *arguments) == 2
    assert message in capsys.readouterr().err


def test_a_script_without_a_query_gets_no_advice(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script.write_text(SCRIPT.split("CREATE QUERY")[0])
    assert plait(monkeypatch, "advise", str(script)) == 2
    assert "has no query to give advice on" in capsys.readouterr().err


def test_many_queries_are_cut_short_in_text_and_complete_in_json() -> None:
    drawn = draw(RandomJoins(relations=12, queries=30, size=3, seed=5))
    found = advise(drawn.queries, drawn.statistics, drawn.options("ilp", 1))
    text = FORMATS["text"](found, (), Statistics())
    assert f"... and {len(found.queries) - 10} more (--format json lists all)" in text
    assert f"... and {len(found.stores) - 10} more (--format json lists all)" in text
    assert max(map(len, text.splitlines())) < 200
    assert len(json.loads(FORMATS["json"](found, (), Statistics()))["queries"]) == len(found.queries)


def test_a_sample_is_shown_as_options_to_declare() -> None:
    drawn = draw(RandomJoins(relations=3, queries=1, size=2, seed=5))
    found = advise(drawn.queries, drawn.statistics, drawn.options("ilp", 1))
    read = (
        SampledSource(source="orders", rows=1_000),
        SampledSource(source="part", rows=7, is_whole=True),
        SampledSource(source="clicks", problem="no batch reading"),
    )
    measured = Statistics(
        sources=(
            SourceStatistics(
                source="orders",
                rate_rows_per_s=0.01234,
                distinct=(("#k bigint `id`", 990.0), ("#k string lower(`x`)", 4.0), ("#k string `a b`", 5.0)),
            ),
            SourceStatistics(source="part", rows=7.0),
        )
    )
    text = FORMATS["text"](found, read, measured)
    assert "orders: the first 1,000 rows; OPTIONS (rate '0.0123', 'distinct.a b' '5', distinct.id '990')" in text
    assert "part: all 7 rows; OPTIONS (rows '7')" in text
    assert "clicks: could not be read (no batch reading); declare what is known of it" in text


def test_what_cannot_be_declared_has_to_be_sampled() -> None:
    assert how_to_tell(Unknown(source="r", what="selectivity", of="`v` > 1")) == "--sample 10000"
    assert how_to_tell(Unknown(source="r", what="rate")) == "rate '...' of r, or --sample 10000"
    unusual = Unknown(source="my stream", what="distinct", of="`a b`", column="a b")
    assert how_to_tell(unusual) == "'distinct.a b' '...' of `my stream`, or --sample 10000"
