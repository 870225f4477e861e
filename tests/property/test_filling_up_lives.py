"""Lives in which every query is a new one that has the results of the past a few rows at a time, while plans change,
buckets are merged and the engine is killed: each gets all of them once, if it stays for so long.

A run checks 25 lives; ``PLAIT_LIVES=20000`` sets another number (a third of it is checked), ``PLAIT_SEED=1000000``
where they start. Lives in which no query has results of the past are passed over.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from plait.operators.probe.probing import ProbeContext
from plait.runtime.batch.microbatch import BatchProcessor
from plait.runtime.batch.record import Batch
from tests.oracle.duckdb_oracle import UnsuitableCaseError
from tests.oracle.entitlement import Entitlement, entitlements, history
from tests.property.case import CaseQuery
from tests.property.forcing import Forcing
from tests.property.life_cases import FAIL_POINTS, random_life
from tests.property.life_running import LifeRun, fault, run_life
from tests.property.life_shrinking import shrink_life
from tests.property.lives import Life, describe, incarnations

LIVES = int(os.environ.get("PLAIT_LIVES", "75")) // 3
FIRST_SEED = int(os.environ.get("PLAIT_SEED", "0")) + 12_000_000


def life_of(seed: int) -> Life:
    """Return a life in which no query comes back, and the engine is killed more often than in others."""
    rng = random.Random(f"filling up {seed}")
    life = random_life(seed)
    versions: dict[str, list[CaseQuery]] = {}

    def named(query: CaseQuery) -> CaseQuery:
        known = versions.setdefault(query.name, [])
        if not any(each is query for each in known):
            known.append(query)
        return new.setdefault(id(query), replace(query, name=f"{query.name}v{len(known)}"))

    new: dict[int, CaseQuery] = {}
    spans = tuple(
        replace(
            span,
            queries=tuple(map(named, span.queries)),
            way=replace(span.way, backfill=True, compaction=rng.random() < 0.6),
            kill=(rng.choice((0, 1, 1, 2)), rng.choice(FAIL_POINTS)) if rng.random() < 0.25 else None,
        )
        for span in life.spans
    )
    return replace(life, spans=spans)


@dataclass(slots=True)
class Bits:
    """Lets batches take a few rows of the past, and those of the last span of a life all that is left. `waits`: after
    how many batches something was left.
    """

    life: Life
    waits: int = 0
    at: int = 0
    forcing: Forcing = field(init=False)

    def __post_init__(self) -> None:
        rng = random.Random(f"bits {self.life.seed}")
        self.forcing = Forcing(
            seed=f"plans {self.life.seed}", share=rng.choice((0.0, 0.3)), fill_rows=rng.choice((1, 2, 3, 5, 10))
        )

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Let it happen to the engines of the life."""
        self.forcing.install(patch)
        patch.setattr("plait.runtime.batch.microbatch.AT_ONCE_ROWS", -1)
        reveal, fill_up = LifeRun._reveal, BatchProcessor._fill_up

        def revealed(run: LifeRun) -> None:
            self.at = run._at
            reveal(run)

        def filled(processor: BatchProcessor, work: Batch, context: ProbeContext) -> Batch:
            processor._is_endless = self.at < len(self.life.spans) - 1
            after = fill_up(processor, work, context)
            self.waits += after.before is not None and any(each.left for each in after.before.filling_up)
            return after

        patch.setattr(LifeRun, "_reveal", revealed)
        patch.setattr(BatchProcessor, "_fill_up", filled)


def owed(life: Life) -> dict[str, Entitlement]:
    """Return what queries are entitled to: those that go, or never see a batch of the last span, may lack of the past
    what they like. Raises UnsuitableCaseError if no query has results of the past.
    """
    all_ = entitlements(life)
    least = entitlements(
        replace(life, spans=tuple(replace(each, way=replace(each.way, backfill=False)) for each in life.spans))
    )
    if all(all_[key].must == least[key].must for key in all_):
        raise UnsuitableCaseError("nobody has results of the past")
    last = len(life.spans) - 1
    has_batches = any(batch.span == last for batch in history(life).batches)
    stays: Mapping[str, bool] = {each.key: each.last == last and has_batches for each in incarnations(life)}
    return {key: each if stays[key] else replace(each, must=least[key].must) for key, each in all_.items()}


def problem_of(life: Life, bits: Bits) -> str | None:
    """Return what is wrong with a life. Raises UnsuitableCaseError."""
    expected = owed(life)
    try:
        return fault(life, run_life(life, bits.install), expected)
    except Exception as error:  # any error at all is a finding
        return f"{type(error).__name__}: {error}"


def test_a_query_that_has_the_past_bit_by_bit_gets_what_it_is_entitled_to() -> None:
    seen, seed = Counter[str](), FIRST_SEED
    while seen["lives"] < LIVES:
        life, seed = life_of(seed), seed + 1
        bits = Bits(life)
        try:
            problem = problem_of(life, bits)
        except UnsuitableCaseError:
            continue
        if problem is not None:
            smaller = shrink_life(life, lambda found: problem_of(found, Bits(found)) is not None)
            text = f"seed {life.seed}: {problem}\nsmallest life found: {problem_of(smaller, Bits(smaller))}\n"
            pytest.fail(text + describe(smaller), pytrace=False)
        seen.update(lives=1, waits=bits.waits, stages=len(bits.forcing.stages))
    assert min(seen["waits"], seen["stages"]) >= LIVES // 5, seen
