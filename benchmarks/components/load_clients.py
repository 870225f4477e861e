"""Clients of the service: each listens to the events and asks for the status once a second.

`python -m benchmarks.components.load_clients HOST PORT COUNT` goes on until its input ends, and then prints what it has
seen as one JSON object.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections import Counter
from contextlib import suppress
from time import perf_counter

_EVERY_S = 1.0
_SLOWEST = 50_000


class Clients:
    """What all of them have seen: `counts` by kind, and how long statuses took."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self.counts = Counter[str]()
        self.seconds: list[float] = []

    async def run(self, count: int) -> None:
        """Let so many go on until the input ends."""
        tasks = [asyncio.ensure_future(each) for _ in range(count) for each in (self._poll(), self._listen())]
        await asyncio.to_thread(sys.stdin.read)
        for task in tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _poll(self) -> None:
        await asyncio.sleep(random.random() * _EVERY_S)
        reader, writer = await asyncio.open_connection(self._host, self._port)
        while True:
            began = perf_counter()
            writer.write(f"GET /status HTTP/1.1\r\nHost: {self._host}\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(length)
            self.counts[f"status {head[9:12].decode()}"] += 1
            if len(self.seconds) < _SLOWEST:
                self.seconds.append(perf_counter() - began)
            await asyncio.sleep(max(0.0, _EVERY_S - (perf_counter() - began)))

    async def _listen(self) -> None:
        while True:
            reader, writer = await asyncio.open_connection(self._host, self._port, limit=1 << 22)
            writer.write(f"GET /events HTTP/1.1\r\nHost: {self._host}\r\n\r\n".encode())
            async for line in reader:
                self.counts["events"] += line.startswith(b"data:")
            self.counts["let go"] += 1
            writer.close()


def main(host: str, port: int, count: int) -> None:
    """Run clients, and print what they have seen."""
    clients = Clients(host, port)
    asyncio.run(clients.run(count))
    slowest = sorted(clients.seconds)
    told = {"p50_s": slowest[len(slowest) // 2], "p99_s": slowest[len(slowest) * 99 // 100]} if slowest else {}
    print(json.dumps({**clients.counts, **told}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
