"""The service before a real engine: `plait run --listen` as a process, asked over HTTP while it runs."""

from __future__ import annotations

import itertools
import json
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.served.asking import Asked, adding, ask
from tests.spark.test_cli import PLAIT, SCRIPT, environment, plait, results

pytestmark = pytest.mark.spark

JOIN = "FROM orders o JOIN items i ON o.id = i.order_id"


def put(folder: Path, name: str, row: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f".{name}").write_text(row)
    (folder / f".{name}").rename(folder / name)


def wait_for(holds: Any, seconds: float = 240) -> Any:
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < end
        time.sleep(0.1)
    return found


def _why(folder: Path, row: str) -> list[str]:
    told = plait("why", str(folder / "shop.sql"), "--query", "soon", "--row", row, "--json")
    assert told.returncode == 0, told.stderr
    return [finding["kind"] for finding in json.loads(told.stdout)["findings"]]


def _live(tmp_path: Path, url: str, get: Callable[[str], Any]) -> None:
    """Watch the engine, add a query and drop it again, and ask about rows."""
    wait_for(lambda: (get("/status")["last_batch"] or {}).get("batch") == 0)
    asked = "/queries/soon/why?row=" + quote("o.customer = 'bob'")
    assert [finding["kind"] for finding in get(asked)["findings"]] == ["met", "no partner", "waits"]
    assert get(asked)["answer"]["held_back_by"] == "items"
    refused = ask(url, adding(f"SELECT o.idd\n {JOIN}", "noop", "wrong"))
    assert (refused.status, refused.json["line"], refused.json["column"]) == (422, 1, 40)
    assert ask(url, adding(f"SELECT o.id {JOIN}", f"json OPTIONS (path '{tmp_path}/no')", "no")).status == 403
    added = ask(url, adding(f"SELECT o.id, i.qty + 1 AS n {JOIN}", "json OPTIONS (path 'more/n')", "more"))
    assert added.status == 202
    wait_for(lambda: get("/queries/more")["active_since"])
    put(tmp_path / "items", "2.csv", "2,7,2026-01-01 10:00:25\n")
    wait_for(lambda: results(tmp_path / "more" / "n"))
    assert results(tmp_path / "more" / "n") == [{"id": 2, "n": 8}]
    wait_for(lambda: get("/queries/more")["rows_out"] == 1)
    told = {query["name"]: (query["state"], query["rows_out"]) for query in get("/queries")["queries"]}
    assert told == {"more": ("active", 1), "soon": ("active", 2)}
    assert get("/plan")["queries"]
    assert set(get("/status")["marks"]) == {"orders", "items"}
    assert get("/queries/more/rows")["rows"] == [["2", "8"]]
    assert b'plait_query_results_total{query="more"} 1' in ask(url, Asked(path="/metrics")).body
    assert "more" in ask(url, Asked(path="/plan?format=text")).body.decode()
    assert get("/plan/history")["epochs"]
    assert ask(url, Asked(method="DELETE", path="/queries/more")).status == 202
    wait_for(lambda: [query["name"] for query in get("/queries")["queries"]] == ["soon"])
    asked = [get("/queries/soon/why?row=" + quote(row)) for row in ("o.id = 2", "o.customer = 'eve'")]
    assert [[finding["kind"] for finding in each["findings"]] for each in asked] == [
        ["met", "met", "came"],
        ["not arrived"],
    ]


GROUPED = f"""
CREATE QUERY sold INTO noop
  AS SELECT window.end AS until, o.customer, sum(i.qty) AS pieces {JOIN}
     GROUP BY window(o.o_ts, '1 minute'), o.customer;
CREATE QUERY most INTO json OPTIONS (path 'more/most')
  AS SELECT window.end AS until, max(s.pieces) AS pieces FROM sold s GROUP BY window(s.until, '1 minute');
"""
WATCHED = f"""
CREATE QUERY again INTO json OPTIONS (path 'more/again')
  AS SELECT o.id, i.qty {JOIN} WHERE i.qty > 1;
"""


def _applied(tmp_path: Path, url: str, get: Callable[[str], Any]) -> None:
    """Apply a script with a query and one that reads its groups, and one without them; save the script of the run."""
    text = (tmp_path / "shop.sql").read_text()
    (tmp_path / "other.sql").write_text(text + GROUPED)
    told = plait("apply", str(tmp_path / "other.sql"), "--to", url, "--yes")
    assert told.returncode == 0, told.stderr
    assert {line.split(":")[0] for line in told.stdout.splitlines() if line[0] in "+~-"} == {"+ sold", "+ most"}
    assert "sold is answered from batch" in told.stdout
    put(tmp_path / "orders", "3.csv", "3,ann,2026-01-01 10:02:00\n4,eve,2026-01-01 10:02:10\n")
    put(tmp_path / "items", "3.csv", "3,4,2026-01-01 10:02:01\n3,5,2026-01-01 10:02:02\n4,1,2026-01-01 10:02:11\n")
    put(tmp_path / "orders", "4.csv", "5,ann,2026-01-01 10:20:00\n")
    put(tmp_path / "items", "4.csv", "5,2,2026-01-01 10:20:00\n")
    put(tmp_path / "orders", "5.csv", "6,ann,2026-01-01 10:40:00\n")
    put(tmp_path / "items", "5.csv", "6,1,2026-01-01 10:40:00\n")
    found = wait_for(lambda: results(tmp_path / "more" / "most"))
    assert found[0] == {"until": "2026-01-01T10:04:00.000000Z", "pieces": 9}
    told = plait("apply", str(tmp_path / "shop.sql"), "--to", url, "--yes")
    assert told.returncode == 0, told.stderr
    assert [line for line in told.stdout.splitlines() if line[0] in "+~-"] == ["- most", "- sold"]
    wait_for(lambda: [query["name"] for query in get("/queries")["queries"]] == ["soon"])
    (tmp_path / "shop.sql").write_text(text + WATCHED.replace("o.id,", "o.idd,"))
    (tmp_path / "shop.sql").write_text(text + WATCHED)
    wait_for(lambda: "again" in [query["name"] for query in get("/queries")["queries"]])
    sent = itertools.count(3)

    def answered() -> list[dict[str, Any]]:
        qty = next(sent)
        put(tmp_path / "items", f"again-{qty}.csv", f"6,{qty},2026-01-01 10:40:01\n")
        time.sleep(0.5)
        return results(tmp_path / "more" / "again")

    assert all(row["id"] == 6 and row["qty"] >= 3 for row in wait_for(answered))
    (tmp_path / "shop.sql").write_text(text)
    wait_for(lambda: [query["name"] for query in get("/queries")["queries"]] == ["soon"])


def test_a_running_engine_is_watched_and_asked_for_more_queries(tmp_path: Path) -> None:
    put(tmp_path / "orders", "1.csv", "1,ann,2026-01-01 10:00:00\n2,bob,2026-01-01 10:00:20\n")
    put(tmp_path / "items", "1.csv", "1,3,2026-01-01 10:00:05\n")
    (tmp_path / "shop.sql").write_text(f"SET plait.allow_paths = 'more';\n{SCRIPT}")
    command = [
        *PLAIT,
        "run",
        str(tmp_path / "shop.sql"),
        "--listen",
        "127.0.0.1:0",
        "--watch",
        "--trigger",
        "0 seconds",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as run:
        assert run.stdout is not None
        url = next(found[1] for line in run.stdout if (found := re.search(r"listening on (http://\S+)", line)))

        def get(path: str) -> Any:
            reply = ask(url, Asked(path=path))
            assert reply.status == 200, reply.body
            return reply.json

        try:
            _live(tmp_path, url, get)
            _applied(tmp_path, url, get)
            run.send_signal(signal.SIGINT)
            run.communicate(timeout=240)
        finally:
            run.kill()
    assert run.returncode == 0
    put(tmp_path / "items", "9.csv", "2,7,2026-01-01 10:00:26\n")
    assert _why(tmp_path, "i.order_id = 2 AND i.i_ts > TIMESTAMP '2026-01-01 10:00:25'") == ["not read yet"]
    soon = results(tmp_path / "soon")
    assert soon[:2] == [{"id": 1, "customer": "ann", "qty": 3}, {"id": 2, "customer": "bob", "qty": 7}]
    later = {(row["id"], row["qty"]) for row in soon[2:]}
    assert later >= {(3, 4), (3, 5), (4, 1), (5, 2), (6, 1), (6, 3)}
