"""Tables for accesses of which no rows have been seen yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plait.plan.key_groups import Access, KeyGroupTable

KEY_GROUPS = 64
"""Of a table; as many partitions have at least one each as long as there are no more of them."""


def first_tables(
    together: Iterable[Sequence[Access]], partitions: int, known: Iterable[KeyGroupTable] = ()
) -> tuple[KeyGroupTable, ...]:
    """Return a table for each of these, those `known` where they serve: key groups side by side, as many to each
    partition. All are alike, so that a row whose keys are equal goes to one partition.

    >>> first_tables([[Access(store="r", key="a", selections=("true",))]], partitions=2)[0].partitions[30:34]
    (0, 0, 1, 1)
    """
    former = {table.operators: table for table in known}
    tables = []
    for accesses in together:
        operators = tuple(access.name for access in accesses)
        groups = KEY_GROUPS * -(-partitions // KEY_GROUPS)
        even = tuple(group * partitions // groups for group in range(groups))
        table = former.get(operators)
        if table is None or max(table.partitions) >= partitions or table.groups < groups:
            table = KeyGroupTable(operators=operators, groups=groups, partitions=even)
        tables.append(table)
    return tuple(tables)


__all__ = ["KEY_GROUPS", "first_tables"]
