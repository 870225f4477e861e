"""Generate Nexmark's events after its public generator, whole columns at a time.

Of each 50 events the first is a person, the next three are auctions, the rest are bids; they come 10,000 a second,
evenly. Three of four auctions are sold by a hot seller (the first of the last hundred persons), three of four bids
come from a hot bidder (the second of them), every other bid goes to a hot auction (the first of the last hundred); the
others are uniform among the last 1,000 persons or 100 auctions, and the next ten, who may not have come yet. An
auction is open for up to twice the time in which 100 more begin. Prices are log-uniform from 1 to 10^6, in cents.

It departs from Nexmark in two ways. A bidder's number is moved by the first person's number once: Nexmark's code adds
it twice, so that its bidders are 1,000 persons ahead of those that exist. And texts (names, items, the filling that
brings rows to Nexmark's average sizes of 200, 500 and 100 bytes) are drawn from some thousand ready ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.workloads.data import FIRST_US
from benchmarks.workloads.nexmark import AUCTION, BID, PERSON
from benchmarks.workloads.stored import Made, generator, table
from plait.errors import OptionError

FORMAT = 1
"""Raise it when the same request gives other rows than before."""

PERSONS, AUCTIONS, ROUND = 1, 3, 50
EVENTS_PER_S = 10_000
FIRST_PERSON, FIRST_AUCTION, FIRST_CATEGORY = 1000, 1000, 10
_CATEGORIES = 5
_HOT_EVERY, _LEAD = 100, 10
_ACTIVE_PERSONS, _IN_FLIGHT = 1000, 100
_READY_TEXTS = 1000
_EVENT_US = 1_000_000 // EVENTS_PER_S
_LONGEST_US = 2 * _IN_FLIGHT * ROUND // AUCTIONS * _EVENT_US

_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
_CITIES = (
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
)
_FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
_LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
_HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")

Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class NexmarkInput:
    """So many events in `files` files a stream."""

    events: int
    files: int = 10
    seed: int = 7

    def __post_init__(self) -> None:
        if self.events < ROUND:
            raise OptionError(f"expected at least {ROUND} Nexmark events, one round of them; found {self.events}")

    @property
    def name(self) -> str:
        """A directory name that no other input has."""
        return f"nexmark-{self.events}-events-{self.files}-files-seed-{self.seed}-v{FORMAT}"

    @property
    def span_s(self) -> float:
        """Seconds of event time."""
        return self.events / EVENTS_PER_S


def make_streams(wanted: NexmarkInput) -> Iterator[Made]:
    """Yield the three streams."""
    events: Int64s = np.arange(wanted.events)
    place = events % ROUND
    is_auction = (place >= PERSONS) & (place < PERSONS + AUCTIONS)
    yield PERSON, _persons(events[place < PERSONS], generator(wanted.seed, "person"))
    yield AUCTION, _auctions(events[is_auction], generator(wanted.seed, "auction"))
    yield BID, _bids(events[place >= PERSONS + AUCTIONS], generator(wanted.seed, "bid"))


def _persons(events: Int64s, random: np.random.Generator) -> pa.Table:
    names = tuple(f"{first} {last}" for first in _FIRST_NAMES for last in _LAST_NAMES)
    columns = {
        "p_ts": _times(events),
        "p_id": _last_person(events) + FIRST_PERSON,
        "p_name": _any_of(names, len(events), random),
        "p_email": _texts(len(events), random, lambda: f"{_word(random, 7)}@{_word(random, 5)}.com"),
        "p_card": _texts(
            len(events), random, lambda: " ".join(f"{part:04d}" for part in random.integers(0, 10_000, 4))
        ),
        "p_city": _any_of(_CITIES, len(events), random),
        "p_state": _any_of(_STATES, len(events), random),
        "p_extra": _texts(len(events), random, lambda: _word(random, 130)),
    }
    return table(PERSON, columns)


def _auctions(events: Int64s, random: np.random.Generator) -> pa.Table:
    rows, times = len(events), _times(events)
    initial = _prices(rows, random)
    last = _last_person(events)
    columns = {
        "a_ts": times,
        "a_id": _last_auction(events) + FIRST_AUCTION,
        "a_item": _texts(rows, random, lambda: _word(random, 20)),
        "a_description": _texts(rows, random, lambda: _word(random, 100)),
        "a_initial": initial,
        "a_reserve": initial + _prices(rows, random),
        "a_expires": times + 1000 + random.integers(0, _LONGEST_US, rows),
        "a_seller": FIRST_PERSON + np.where(_hot(3 / 4, rows, random), _batch(last), _some_person(last, random)),
        "a_category": FIRST_CATEGORY + random.integers(0, _CATEGORIES, rows),
        "a_extra": _texts(rows, random, lambda: _word(random, 330)),
    }
    return table(AUCTION, columns)


def _bids(events: Int64s, random: np.random.Generator) -> pa.Table:
    rows = len(events)
    last, last_auction = _last_person(events), _last_auction(events)
    channel = np.where(
        _hot(1 / 2, rows, random), random.integers(0, len(_HOT_CHANNELS), rows), random.integers(4, 1000, rows)
    )
    channels = pa.array([*_HOT_CHANNELS, *(f"channel-{number}" for number in range(4, 1000))])
    urls = pa.array([f"https://www.nexmark.com/{_word(random, 17)}/item.htm?query=1" for _ in range(1000)])
    columns = {
        "b_ts": _times(events),
        "b_nr": np.arange(rows),
        "b_auction": FIRST_AUCTION
        + np.where(_hot(1 / 2, rows, random), _batch(last_auction), _some_auction(last_auction, random)),
        "b_bidder": FIRST_PERSON + np.where(_hot(3 / 4, rows, random), _batch(last) + 1, _some_person(last, random)),
        "b_price": _prices(rows, random),
        "b_channel": channels.take(pa.array(channel)),
        "b_url": urls.take(pa.array(channel)),
        "b_extra": _texts(rows, random, lambda: _word(random, 68)),
    }
    return table(BID, columns)


def _times(events: Int64s) -> Int64s:
    return FIRST_US + events * _EVENT_US


def _last_person(events: Int64s) -> Int64s:
    """Return the number of the last person who came before or at each event."""
    return events // ROUND * PERSONS + np.minimum(events % ROUND, PERSONS - 1)


def _last_auction(events: Int64s) -> Int64s:
    """Return the number of the last auction that began before or at each event, which is an auction or a bid."""
    return events // ROUND * AUCTIONS + np.minimum(events % ROUND - PERSONS, AUCTIONS - 1)


def _batch(last: Int64s) -> Int64s:
    """Return the first of the hundred that the last one belongs to."""
    return last // _HOT_EVERY * _HOT_EVERY


def _some_person(last: Int64s, random: np.random.Generator) -> Int64s:
    active = np.minimum(last + 1, _ACTIVE_PERSONS)
    return last + 1 - active + random.integers(0, active + _LEAD)


def _some_auction(last: Int64s, random: np.random.Generator) -> Int64s:
    oldest = np.maximum(last - _IN_FLIGHT, 0)
    return oldest + random.integers(0, last - oldest + 1 + _LEAD)


def _hot(share: float, rows: int, random: np.random.Generator) -> NDArray[np.bool_]:
    return random.random(rows) < share


def _prices(rows: int, random: np.random.Generator) -> Int64s:
    return np.round(10 ** (random.random(rows) * 6) * 100).astype(np.int64)


def _any_of(values: tuple[str, ...], rows: int, random: np.random.Generator) -> pa.Array:
    return pa.array(values).take(pa.array(random.integers(0, len(values), rows)))


def _texts(rows: int, random: np.random.Generator, make: Callable[[], str]) -> pa.Array:
    return _any_of(tuple(make() for _ in range(_READY_TEXTS)), rows, random)


def _word(random: np.random.Generator, length: int, first: str = "a", last: str = "z") -> str:
    return bytes(random.integers(ord(first), ord(last) + 1, length, dtype=np.uint8)).decode()
