"""Events for those who listen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from plait.server.event_feed import MOST_WAITING, REMEMBERED_BYTES, CrowdedError, EventFeed


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
        listening = feed.place().frames()
        assert await _data(listening) == [1, 2]
        _told(feed, 3)
        assert await _data(listening) == [3]
        again = feed.place(after=2).frames()
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
        recent = await anext(feed.place().frames())
        assert len(recent) < REMEMBERED_BYTES + 100
        assert b'"batch":99,' in recent

    asyncio.run(run())


def test_who_falls_behind_is_let_go_and_leaves_a_place() -> None:
    async def run() -> None:
        feed = EventFeed(1)
        feed.open(asyncio.get_running_loop())
        listening = feed.place().frames()
        await anext(listening)
        _told(feed, *range(MOST_WAITING + 1))
        await asyncio.sleep(0)
        feed.place()
        assert [frame async for frame in listening] == []

    asyncio.run(run())


def test_a_place_is_taken_before_anything_is_read_and_free_once_it_is_left() -> None:
    async def run() -> None:
        feed = EventFeed(1)
        place = feed.place()
        with pytest.raises(CrowdedError):
            feed.place()
        place.leave()
        place.leave()
        feed.place()

    asyncio.run(run())


def test_silence_is_broken_now_and_then_so_that_nobody_takes_it_for_the_end() -> None:
    async def run() -> None:
        feed = EventFeed(1)
        feed.open(asyncio.get_running_loop())
        listening = feed.place().frames(heartbeat_seconds=0.01)
        await anext(listening)
        assert await anext(listening) == b": still here\n\n"

    asyncio.run(run())
