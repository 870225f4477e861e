"""Plans that follow the data by the product's own decision, at every batch boundary where another is forecast to gain
at all, change no result.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter

import pytest

from plait.adapt.planning import PlanRequest
from plait.adapt.reconsidering import Policy, Standing, UnderWay, reconsider
from plait.adapt.rule import Rule
from plait.optimizer.options import PlanOptions
from plait.plan.model import Plan
from plait.plan.strategy_names import StrategyName
from plait.state.buckets import close_others
from plait.state.model import Manifest
from plait.state.storage import Storage
from tests.oracle.duckdb_oracle import UnsuitableCaseError, expected
from tests.property.case import Case, describe
from tests.property.cases import random_case
from tests.property.direct import FREE_STORES, DirectRun, Outcome
from tests.property.front_end import from_text
from tests.property.running import fault

CASES = int(os.environ.get("PLAIT_CASES", "800")) // 20
FIRST_SEED = int(os.environ.get("PLAIT_SEED", "0")) + 8_000_000
CHUNK = 40
ADAPTING: tuple[StrategyName, ...] = ("greedy", "ilp", "bushy", "dppick")
ALWAYS = Policy(rule=Rule(horizon_s=30.0, margin=0.0), is_young=True)


class FollowingRun(DirectRun):
    """A run that begins with one strategy and follows another on what its batches have shown."""

    wanted_strategy: StrategyName = "greedy"
    changes = 0

    def _next_plan(self, running: Plan, manifest: Manifest, batch: int) -> Plan:
        if batch == 0:
            return running
        options = PlanOptions(
            strategy=self.wanted_strategy,
            sources=self.sources,
            parallelism=self.options.parallelism_at(batch),
            storage_rows=self.options.storage_rows,
            costs=FREE_STORES,
        )
        request = PlanRequest(queries=self.queries, options=options)
        under_way = UnderWay(plan=self.governing.plan)
        decision = reconsider(request, manifest, Standing(running=running, under_way=under_way), ALWAYS)
        if decision.change is not None:
            self.changes += 1
        return decision.after.running


def followed(case: Case, strategy: StrategyName) -> tuple[Outcome, int]:
    """Return what a case comes to, and how often its plan has changed."""
    sources, queries = from_text(case)
    directory = tempfile.mkdtemp(prefix="plait-follow-")
    try:
        run = FollowingRun(case, sources, queries, directory)
        run.wanted_strategy = strategy
        return run.run(), run.changes
    finally:
        close_others(Storage.open(directory), ())
        shutil.rmtree(directory)


@pytest.mark.parametrize("first", range(FIRST_SEED, FIRST_SEED + CASES, CHUNK))
def test_plans_that_follow_the_data_output_what_duckdb_computes(first: int) -> None:
    changes = Counter[str]()
    for seed in range(first, first + CHUNK):
        strategy = ADAPTING[seed % len(ADAPTING)]
        case = random_case(seed, late=seed % 10 == 9, thetas=seed % 4 == 3)
        case = case.with_options(strategies=("fixed",) * case.batches, block_rows=max(case.options.block_rows, 16))
        try:
            wanted = expected(case)
            outcome, changed = followed(case, strategy)
        except UnsuitableCaseError:
            continue
        problem = fault(case, outcome, wanted)
        if problem is not None:
            pytest.fail(f"seed {seed}, {strategy}: {problem}\n{describe(case)}", pytrace=False)
        changes[strategy] += changed
    assert changes.total() >= CHUNK // 8
