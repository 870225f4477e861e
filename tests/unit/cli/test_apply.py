"""`plait queries` and `plait apply`, with a stand-in for the engine behind a real service."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from plait.cli.main import main
from plait.cli.script_difference import difference, statement_text
from plait.server.addresses import Listening
from plait.server.of_engine import described
from plait.server.service import Rules, Service
from plait.sql import load_script
from plait.sql.script.remote import Remote
from tests.served.stand_in import StandIn

SOURCES = """
CREATE STREAM orders (id BIGINT, word STRING, ts TIMESTAMP) USING mine TIMESTAMP BY ts WINDOW INTERVAL 30 SECONDS;
CREATE STREAM items (id BIGINT, word STRING, ts TIMESTAMP) USING mine TIMESTAMP BY ts WINDOW INTERVAL 30 SECONDS;
"""
JOIN = "FROM orders o JOIN items i ON o.id = i.id"
SOON = f"CREATE QUERY soon INTO noop AS SELECT o.id {JOIN};"
LATE = f"CREATE QUERY late INTO noop WINDOW (o INTERVAL 5 SECONDS) AS SELECT o.id {JOIN} WHERE o.word = 'it''s {{}}';"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[tuple[str, StandIn]]:
    engine = StandIn()
    allowed = Remote(allowed_paths=(str(tmp_path / "out"),), base=str(tmp_path))
    with Service(Rules(listening=Listening(host="127.0.0.1", port=0), allowed=allowed)) as running:
        running.begin(engine)
        yield running.url, engine


def plait(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["plait", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_an_engine_comes_to_answer_a_script_and_then_nothing_is_left_to_do(
    tmp_path: Path, service: tuple[str, StandIn], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url, engine = service
    file = tmp_path / "shop.sql"
    file.write_text(f"{SOURCES}{SOON}{LATE}")
    assert plait(monkeypatch, "apply", str(file), "--to", url, "--yes") == 0
    assert sorted(engine.held) == ["late", "soon"]
    assert "late is answered from batch 3 on" in capsys.readouterr().out
    assert plait(monkeypatch, "apply", str(file), "--to", url) == 0
    assert capsys.readouterr().out == "Nothing to do: 2 queries are answered as the script says.\n"
    file.write_text(f"{SOURCES}{SOON.replace('noop', '''parquet OPTIONS (path 'out/soon')''')}")
    assert plait(monkeypatch, "apply", str(file), "--to", url, "--yes") == 0
    told = capsys.readouterr().out
    assert "~ soon: " in told
    assert "- late\n" in told
    assert sorted(engine.held) == ["soon"]
    assert plait(monkeypatch, "queries", "--to", url) == 0
    assert f"soon   active  7        orders, items  parquet {tmp_path}/out/soon" in capsys.readouterr().out


def test_without_a_yes_nothing_is_changed(
    tmp_path: Path, service: tuple[str, StandIn], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, engine = service
    (tmp_path / "shop.sql").write_text(f"{SOURCES}{SOON}")
    monkeypatch.setattr("typer.confirm", lambda _: False)
    assert plait(monkeypatch, "apply", str(tmp_path / "shop.sql"), "--to", url) == 1
    assert engine.held == {}


def test_a_refusal_comes_in_the_words_of_the_service(
    tmp_path: Path, service: tuple[str, StandIn], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "shop.sql").write_text(f"{SOURCES}{SOON.replace('noop', '''json OPTIONS (path 'elsewhere')''')}")
    assert plait(monkeypatch, "apply", str(tmp_path / "shop.sql"), "--to", service[0], "--yes") == 2
    assert "SET plait.allow_paths" in capsys.readouterr().err


@pytest.mark.parametrize("url", ["127.0.0.1:8040", "ftp://x", "http://a@b", "http://x?token=y", ""])
def test_what_is_no_address_of_a_service_is_refused(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plait(monkeypatch, "queries", "--to", url) == 2
    assert "expected one such as http://127.0.0.1:8040" in capsys.readouterr().err


def test_where_nobody_listens_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert plait(monkeypatch, "queries", "--to", "http://127.0.0.1:1") == 1
    assert "is the run under way?" in capsys.readouterr().err


def test_a_statement_for_a_query_says_all_of_it() -> None:
    script = load_script(f"{SOURCES}{SOON}{LATE}", base="/nowhere")
    texts = [statement_text(query) for query in script.queries]
    again = load_script(SOURCES + "".join(f"{text};" for text in texts), base="/nowhere")
    assert [described(query) for query in again.queries] == [described(query) for query in script.queries]


@pytest.mark.parametrize(
    "other",
    [
        SOON.replace("SELECT o.id", "SELECT i.id"),
        SOON.replace("AS SELECT", "WINDOW (i INTERVAL 29 SECONDS) AS SELECT"),
        SOON.replace("AS SELECT", "WINDOW (i UNBOUNDED) AS SELECT"),
        SOON.replace("noop", "json OPTIONS (path '/x')"),
    ],
)
def test_a_query_is_another_one_if_its_text_its_windows_or_its_sink_are(other: str) -> None:
    before, after = (load_script(SOURCES + text, base="/nowhere") for text in (SOON, other))
    running = [described(query) for query in before.queries]
    found = difference(after.queries, after.sources, running)
    assert [query.name for query in found.replaced] == ["soon"]
    assert difference(before.queries, before.sources, running).is_empty


def test_a_view_that_says_something_else_makes_another_query_of_those_that_read_it() -> None:
    view = "CREATE VIEW both AS SELECT o.id, o.word {};"
    asked = "CREATE QUERY q INTO noop AS SELECT b.id FROM both b;"
    before, after = (
        load_script(f"{SOURCES}{view.format(JOIN + where)}{asked}", base="/nowhere")
        for where in ("", " WHERE o.id > 5")
    )
    running = [described(query) for query in before.queries]
    assert difference(before.queries, before.sources, running).is_empty
    assert [query.name for query in difference(after.queries, after.sources, running).replaced] == ["q"]


def test_a_statement_for_a_query_over_groups_says_no_window_where_none_can_be_said() -> None:
    groups = "SELECT window.end AS until, count(*) AS n FROM orders o GROUP BY window(o.ts, '1 hour')"
    made = f"CREATE QUERY hours INTO noop AS {groups};"
    script = load_script(f"{SOURCES}{made}CREATE QUERY many INTO noop AS SELECT h.n FROM hours h WHERE h.n > 1;")
    texts = [statement_text(query) for query in script.queries]
    assert texts[1] == "CREATE QUERY `many` INTO noop AS SELECT h.n FROM hours h WHERE h.n > 1"
    again = load_script(SOURCES + "".join(f"{text};" for text in texts))
    assert [query.relations for query in again.queries] == [query.relations for query in script.queries]


def test_who_reads_groups_is_dropped_before_who_makes_them() -> None:
    loaded = load_script(
        f"""{SOURCES}
        CREATE QUERY hours INTO noop AS
            SELECT window.end AS until, count(*) AS n FROM orders o GROUP BY window(o.ts, '1 hour');
        CREATE QUERY days INTO noop AS
            SELECT window.end AS until, sum(h.n) AS n FROM hours h GROUP BY window(h.until, '1 day');
        """
    )
    assert difference((), loaded.sources, map(described, loaded.queries)).dropped == ("days", "hours")
