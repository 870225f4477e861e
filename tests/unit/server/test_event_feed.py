"""Events for those who listen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from plait.server.event_feed import MOST_WAITING, REMEMBERED_BYTES, EventFeed


async def _data(listening: AsyncIterator[bytes]) -> list[int]:
    text = (await anext(listening)).decode()
    return [json.loads(line[6:])["batch"] for line in text.splitlines() if line.startswith("data: ")]


def _told(feed: EventFeed, *batches: int, **more: str) -> None:
    for batch in batches:
        feed.hear({"event": "batch", "batch": batch, **more})


def test_who_begins_to_listen_hears_what_was_told_lately_and_then_what_happens() -> None:
    async def run() -> None:
        feed = EventFeed(5)
        _told(feed, 0)  # nobody is there yet to remember it
        feed.open(asyncio.get_running_loop())
        _told(feed, 1, 2)
        await asyncio.sleep(0)
        listening = feed.listen()
        assert await _data(listening) == [1, 2]
        _told(feed, 3)
        assert await _data(listening) == [3]
        again = feed.listen(after=2)
        assert await _data(again) == [3]
        feed.close()
        assert [frame async for frame in listening] == []

    asyncio.run(run())


def test_what_is_remembered_has_a_limit() -> None:
    async def run() -> None:
        feed = EventFeed(5)
        feed.open(asyncio.get_running_loop())
        _told(feed, *range(100), padding="x" * 10_000)
        await asyncio.sleep(0)
        recent = await anext(feed.listen())
        assert len(recent) < REMEMBERED_BYTES + 100
        assert b'"batch":99,' in recent

    asyncio.run(run())


def test_who_falls_behind_is_let_go_and_leaves_a_place() -> None:
    async def run() -> None:
        feed = EventFeed(1)
        feed.open(asyncio.get_running_loop())
        listening = feed.listen()
        await anext(listening)
        assert feed.is_full
        _told(feed, *range(MOST_WAITING + 1))
        await asyncio.sleep(0)
        assert not feed.is_full
        assert [frame async for frame in listening] == []

    asyncio.run(run())


def test_silence_is_broken_now_and_then_so_that_nobody_takes_it_for_the_end() -> None:
    async def run() -> None:
        feed = EventFeed(1)
        feed.open(asyncio.get_running_loop())
        listening = feed.listen(heartbeat_seconds=0.01)
        await anext(listening)
        assert await anext(listening) == b": still here\n\n"

    asyncio.run(run())
