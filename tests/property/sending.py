"""Random tables, and rows sent by them: what Spark does in `plait.runtime.batch.streaming_query`, row by row."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from plait.kernels.dispatching import dispatch
from plait.kernels.hashing import key_group_of
from plait.operators.column_names import SENT, bit_masks
from plait.operators.ingest.placed_rows import is_told, number_of, with_sent
from plait.operators.ingest.placing import int64_values
from plait.operators.ingest.projection import IngestSpec
from plait.plan.accesses import accesses_of
from plait.plan.key_groups import UNWANTED, Access, Generation, KeyGroupTable, Split, groups_with
from plait.plan.model import Plan

MOST_PARTITIONS = 5


def random_generation(
    rng: random.Random, plan: Plan, streams: Sequence[str], batch: int, hot: Mapping[tuple[str, str], Sequence[int]]
) -> Generation | None:
    """Draw tables for some of the accesses of a plan, with split keys out of those that are `hot`, by store and key."""
    together = [accesses for accesses in accesses_of(plan, streams) if rng.random() < 0.85]
    if not together:
        return None
    partitions = rng.randint(1, MOST_PARTITIONS)
    tables = tuple(_random_table(rng, accesses, partitions, hot) for accesses in together)
    accesses = sorted((each for of_table in together for each in of_table), key=lambda each: each.name)
    return Generation(first_batch=batch, tables=tables, accesses=tuple(accesses), partitions=partitions)


def _random_table(
    rng: random.Random,
    accesses: Sequence[Access],
    partitions: int,
    hot: Mapping[tuple[str, str], Sequence[int]],
) -> KeyGroupTable:
    groups = rng.choice((1, 2, 3, 8))
    keys = sorted({key for access in accesses for key in hot[access.store, access.key]})
    split = rng.sample(keys, min(len(keys), rng.choice((0, 0, 1, 2, 4))))
    stores = sorted({access.store for access in accesses})
    splits = tuple(Split(key=key, spread=rng.choice(stores), parts=rng.randint(2, 4)) for key in sorted(split))
    placed = tuple(rng.randrange(partitions) for _ in range(groups_with(splits, groups)))
    operators = tuple(access.name for access in accesses)
    return KeyGroupTable(operators=operators, groups=groups, partitions=placed, splits=splits)


def sent(rows: pa.Table, spec: IngestSpec, generation: Generation) -> Iterator[pa.Table]:
    """Yield what arrives in each partition, with what tasks are told of it. Columns of `rows` are the spec's."""
    (batch,) = rows.combine_chunks().to_batches()
    if not is_told(spec, generation):
        yield pa.Table.from_batches([with_sent(batch, spec, generation, turn=3)])
        return
    matrices, bits = [], []
    (store,) = (store.id for store, _ in spec.stores)
    for access in generation.accesses_of(store):
        places = _places(rows, spec, generation, access)
        matrices.append(places)
        bits += [generation.bit_of(access)] * places.shape[1]
    wanted = np.concatenate(matrices, axis=1)
    firsts = [next((place for place in row if place != UNWANTED), 2 % generation.partitions) for row in wanted.tolist()]
    home = np.array(firsts, dtype=np.int64).reshape(-1, 1)
    found = dispatch(np.concatenate((wanted, home), axis=1), np.array([*bits, 1]), generation.partitions)
    is_split = generation.splits_keys_of(store)
    told = number_of(found.partition, found.bits & 1, found.bits & -2 if is_split else np.zeros_like(found.bits))
    arrived = rows.take(pa.array(found.row)).append_column(SENT, pa.array(told))
    for partition in range(generation.partitions):
        yield arrived.filter(pa.array(found.partition == partition))


def _places(rows: pa.Table, spec: IngestSpec, generation: Generation, access: Access) -> np.ndarray:
    table = generation.table_of(access.name)
    column = dict(spec.aliases).get(access.key, access.key)
    keys, is_wanted = int64_values(rows, column), rows[column].is_valid().to_numpy()
    if spec.selections not in ((), ("true",)) and "true" not in access.selections:
        holds = np.zeros(len(keys), np.bool_)
        for word, mask in bit_masks(spec.selections, access.selections).items():
            holds |= (int64_values(rows, word) & mask) != 0
        is_wanted = is_wanted & holds
    key_groups = np.where(is_wanted, key_group_of(keys, table.groups), UNWANTED)
    return table.destinations(keys, key_groups, np.arange(len(keys)) * 7, access.store)


__all__ = ["random_generation", "sent"]
