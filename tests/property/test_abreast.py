"""Random cases whose steps are taken side by side wherever that can be, and the same where each is taken by itself: the
same results and counts, of far fewer look-ups.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest

from plait.operators.probe import probing
from plait.operators.probe.lookups import Lookup, lookup_of
from plait.operators.probe.partials import Partials
from plait.plan.model import Step
from tests.oracle.duckdb_oracle import UnsuitableCaseError
from tests.property.cases import random_case
from tests.property.direct import Outcome
from tests.property.running import run_case

CASES, NEVER = 20, 1 << 40


def test_steps_side_by_side_find_and_count_what_they_do_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up = Counter[int]()
    outcomes: dict[tuple[int, int], Outcome] = {}
    seeds = (seed for seed in range(1000) if (case := random_case(seed)).options.routing == "local")
    for seed in islice(seeds, CASES):
        for steps in (0, NEVER):

            def noted(partials: Partials, step: Step, *, timed: bool, steps: int = steps) -> Lookup:
                looked_up[steps] += 1
                return lookup_of(partials, step, timed=timed)

            monkeypatch.setattr(probing, "lookup_of", noted)
            case = random_case(seed).with_options(abreast_steps=steps, block_rows=1 << 12)
            try:
                outcomes[seed, steps] = run_case(case)
            except UnsuitableCaseError:
                continue
        both = [outcomes.get((seed, steps)) for steps in (0, NEVER)]
        if both[0] is not None and both[1] is not None:
            assert both[0].rows_out == both[1].rows_out
            assert both[0].probe_tuples == both[1].probe_tuples
            assert both[0].cycles == both[1].cycles
    assert len(outcomes) > CASES
    assert looked_up[0] < 0.5 * looked_up[NEVER]
