"""The page: what it is made of, and (with PLAIT_BROWSER=1, where there is a Chromium) what it does in a browser."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from plait.server.addresses import Listening
from plait.server.page_files import FILES, FOLDER, page_files
from plait.server.service import Rules, Service
from tests.served.asking import TOKEN, Asked, ask, posting
from tests.served.browser import PROGRAM, Browser
from tests.served.pictured import Pictured

in_browser = pytest.mark.skipif(
    os.environ.get("PLAIT_BROWSER") != "1" or PROGRAM is None, reason="PLAIT_BROWSER=1 tries the page in a Chromium"
)
DRAWN = "document.querySelectorAll('#queries li').length && document.querySelectorAll('#plan rect').length"


@contextmanager
def serving(count: int, token: str | None = None) -> Iterator[tuple[str, Pictured]]:
    engine = Pictured(count)
    with Service(Rules(listening=Listening(host="127.0.0.1", port=0), token=token)) as service:
        service.begin(engine)
        for _ in range(5):
            engine.batch()
        yield service.url, engine


def _text(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def test_the_page_is_served_as_it_is_and_needs_no_token() -> None:
    with serving(1, TOKEN) as (url, _):
        for path, (content, kind) in page_files().items():
            reply = ask(url, Asked(path=path))
            assert (reply.status, reply.body, reply.headers["content-type"]) == (200, content, kind)
            assert "default-src 'none'; script-src 'self'" in reply.headers["content-security-policy"]
        assert ask(url, Asked(path="/queries")).status == 401


def test_nothing_on_the_page_comes_from_elsewhere() -> None:
    for name, _ in FILES.values():
        named = re.findall(r"""(?:https?:)?//[^\s"'`]+""", re.sub(r"^\s*//.*$", "", _text(name), flags=re.MULTILINE))
        assert [each for each in named if each != "http://www.w3.org/2000/svg"] == []
    assert not re.search(r"<script(?![^>]*src=)|\son\w+=|\sstyle=|<style", _text("index.html"))
    assert not re.search(r"\b(eval|innerHTML|outerHTML|insertAdjacentHTML|document\.write)\b", _text("page.js"))


def test_what_the_script_looks_for_is_on_the_page_and_every_field_has_a_label() -> None:
    page, script = _text("index.html"), _text("page.js")
    ids = set(re.findall(r'\bid="([\w-]+)"', page))
    assert set(re.findall(r"""\$\("([\w-]+)"\)""", script)) <= ids
    assert set(re.findall(r'(?:for|aria-labelledby)="([\w-]+)"', page)) <= ids
    fields = set(re.findall(r'<(?:input|textarea) id="([\w-]+)"', page))
    assert fields == set(re.findall(r'for="([\w-]+)"', page))


def test_a_query_is_checked_as_it_is_typed_and_what_is_wrong_is_no_failure() -> None:
    with serving(1) as (url, engine):
        text = "CREATE QUERY q INTO noop AS\nSELECT o.{} FROM orders o JOIN items i ON o.id = i.id"
        wrong = ask(url, posting(text.format("idd"), path="/check"))
        assert (wrong.status, wrong.json["line"], wrong.json["column"]) == (200, 2, 8)
        assert ask(url, posting(text.format("id"), path="/check")).json == {"error": None}
        for refused in ("java_method('a', 'b')", "- " * 2500 + "1"):
            told = ask(url, posting(text.format("id").replace("o.id FROM", f"{refused} AS x FROM"), path="/check"))
            assert told.json["error"]
        assert sorted(engine.held) == ["query_000"]
        assert ask(url, Asked(path="/queries/query_000/rows")).json["columns"] == ["id", "word"]


@in_browser
@pytest.mark.parametrize("count", [1, 20, 500])
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_however_many_queries_there_are_the_page_shows_them_without_a_complaint(
    count: int, width: int, scheme: str
) -> None:
    with serving(count) as (url, engine), Browser() as browser:
        browser.open(url, width=width, scheme=scheme)
        browser.until(DRAWN)
        engine.batch()
        browser.until("document.querySelector('#state').textContent.includes('batch 6')")
        assert browser.run("document.querySelectorAll('#queries li').length") == min(count, 25)
        assert browser.run("document.documentElement.scrollWidth <= innerWidth")
        assert browser.run("document.documentElement.dataset.theme") == scheme
        assert browser.run("document.querySelector('.holds').textContent").endswith("holds all others back")
        assert browser.complaints == []


@in_browser
def test_one_adds_a_query_watches_it_asks_why_and_drops_it_again() -> None:
    with serving(30) as (url, engine), Browser() as browser:
        browser.open(url)
        browser.until(DRAWN)
        _type(browser, "CREATE QUERY mine INTO noop AS SELECT o.idd FROM orders o JOIN items i ON o.id = i.id")
        browser.until("document.querySelector('#mistake').textContent.includes('line 1, column 39')")
        _type(browser, "CREATE QUERY mine INTO noop AS SELECT o.id FROM orders o JOIN items i ON o.id = i.id")
        browser.until("document.querySelector('#mistake').textContent == 'no mistake found'")
        browser.run("document.querySelector('#add').requestSubmit()")
        browser.until("document.querySelector('#mistake').textContent.startsWith('mine takes part')")
        assert "mine" in engine.held
        browser.run("document.querySelector('#search').value = 'mine'")
        browser.run("document.querySelector('#search').dispatchEvent(new Event('input'))")
        browser.until("document.querySelectorAll('#queries li').length == 1")
        browser.run("document.querySelector('[data-key=\"Look mine\"]').click()")
        browser.until("document.querySelector('#detail-text').textContent.includes('Probe trees')")
        assert "22  NULL" in browser.run("document.querySelector('#detail-text').textContent")
        assert browser.run("getComputedStyle(document.querySelector('#ask')).display") == "none"
        browser.press("Escape", 27)
        browser.until("!document.querySelector('#detail').open")
        browser.run("document.querySelector('[data-key=\"Why mine\"]').focus()")
        browser.press("Enter", 13, "\r")
        browser.until("document.querySelector('#detail').open && document.activeElement.id == 'row'")
        browser.run("document.querySelector('#row').value = 'o.id = 17'")
        browser.press("Enter", 13, "\r")
        browser.until("document.querySelector('#detail-text').textContent.includes('no row of stream trips')")
        browser.press("Escape", 27)
        browser.run("window.confirm = () => true")
        browser.run("document.querySelector('[data-key=\"Drop mine\"]').click()")
        browser.until("document.querySelector('#shown').textContent == 'none'")
        assert "mine" not in engine.held
        assert browser.complaints == []


def _type(browser: Browser, sql: str) -> None:
    browser.run(f"document.querySelector('#sql').value = {sql!r}")
    browser.run("document.querySelector('#sql').dispatchEvent(new Event('input'))")


@in_browser
def test_a_token_is_asked_for_once_and_never_put_into_a_url() -> None:
    with serving(3, TOKEN) as (url, _), Browser() as browser:
        browser.open(url)
        browser.until("document.querySelector('#login').open")
        browser.run(f"document.querySelector('#token').value = {TOKEN!r}")
        browser.run("document.querySelector('#token-form').requestSubmit()")
        browser.until(DRAWN)
        asked = browser.run("performance.getEntriesByType('resource').map((each) => each.name).join(' ')")
        assert TOKEN not in asked
        browser.until("document.querySelector('#state').textContent.startsWith('running, batch')")
