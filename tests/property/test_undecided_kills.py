"""An engine that dies at any step while rows wait for partners and windows are open: in the end nothing is missing and
nothing is there twice.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from plait import faults
from plait.errors import OptionError
from tests.property.standin import frames
from tests.property.undecided import Place

POINTS = (
    *("stored", "probed", "closed", "delivered", "committed", "published"),
    *("write:stores", "write:groups", "link:manifests", "rename:arrow", "stage", "publish", "mark"),
)
"""Where an engine may die: after each phase, and at what it writes and publishes in between."""
BATCHES = 5


class Killed(Exception):
    """The engine died."""


class Deaths:
    """Lets the engine die the `count`-th time that it comes to `point`; counts how often it came there."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self.died = 0

    def arm(self, point: str | None, count: int) -> None:
        faults._reached.clear()
        environment = {} if point is None else {"PLAIT_FAULT": f"{point}:{count}"}
        self._patch.setattr(faults, "os", SimpleNamespace(environ=environment, kill=self._die, getpid=os.getpid))

    def _die(self, *_: object) -> None:
        self.died += 1
        raise Killed


@pytest.fixture
def deaths() -> Iterator[Deaths]:
    with pytest.MonkeyPatch.context() as patch:
        frames.install(patch.setattr)
        yield Deaths(patch)


def live(place: Place, deaths: Deaths, point: str, count: int) -> bool:
    """Run until the engine dies or the input ends; then to the end of the input. Tell whether it died."""
    before = deaths.died
    deaths.arm(point, count)
    try:
        place.engine().run_available(close=True)
    except Exception:
        if deaths.died == before:
            raise
    deaths.arm(None, 1)
    if deaths.died > before:
        # What had been committed of the end is brought into sight, and nothing more taken.
        with suppress_ended():
            place.engine().run_available(close=True)
    return deaths.died > before


@contextmanager
def suppress_ended() -> Iterator[None]:
    """Let it pass that the input has ended."""
    try:
        yield
    except OptionError as error:
        if "has ended" not in str(error):
            raise


@pytest.mark.parametrize("point", POINTS)
def test_an_engine_that_dies_while_much_is_undecided_loses_and_repeats_nothing(
    tmp_path: Path, deaths: Deaths, point: str
) -> None:
    rng, died = random.Random(f"deaths at {point}"), 0
    for count in (1, rng.randrange(2, 5), rng.randrange(5, 9)):
        place = Place(tmp_path / f"life {count}", random.Random(f"{point} {count}"))
        place.folder.mkdir()
        for _ in range(BATCHES):
            place.arrive()
        died += live(place, deaths, point, count)
        assert place.found() == place.wanted(), f"died at {point}, the {count}. time"
    assert died, f"no engine came to {point}"


@pytest.mark.parametrize("seed", range(12))
def test_lives_in_which_plans_change_and_engines_die_decide_each_row_once(
    tmp_path: Path, deaths: Deaths, seed: int
) -> None:
    rng, place = random.Random(f"undecided life {seed}"), Place(tmp_path, random.Random(seed))
    for number in range(4):
        for _ in range(rng.randrange(1, 4)):
            place.arrive()
        is_last = number == 3
        while True:
            deaths.arm(rng.choice(POINTS) if rng.random() < 0.6 else None, rng.randrange(1, 4))
            before = deaths.died
            try:
                engine = place.engine(
                    strategy=rng.choice(("greedy", "dppick", "fixed", "shared")), parallelism=rng.randrange(1, 4)
                )
                engine.set_option("plait.compaction", rng.choice(("true", "false")))
                engine.run_available(close=is_last)
                break
            except OptionError as error:
                if "has ended" not in str(error):
                    raise
                break
            except Exception:
                if deaths.died == before:
                    raise
    assert place.found() == place.wanted()
