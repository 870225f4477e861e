"""What a choice of partitions costs: equations 4 to 10 of paper 001, of which 8 is misprinted there.

Equation 8 sums Data-sh a second time; the rows that a partition processes are the sum of Data-nsh (equation 6).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plait.optimizer.linear.linear_program import Floats, Ints
from plait.optimizer.partitioning.traffic import Traffic, added_up


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCost:
    """`sent_rows` and `sending` (rows by latency: eq. 9, part 1) over all sources, `processing` (part 2).

    `balance`: the rows of the partition that processes most of all sources together, by the mean.
    """

    sent_rows: float
    sending: float
    processing: float
    balance: float

    @property
    def total(self) -> float:
        """What is minimized (eq. 10)."""
        return self.sending + self.processing


def cost_of(traffic: Traffic, choice: Ints) -> TableCost:
    """Return what a choice, the partition of each group, costs."""
    sent, processed = rows_sent(traffic, choice), rows_processed(traffic, choice)
    together = processed.sum(axis=0)
    return TableCost(
        sent_rows=float(sent.sum()),
        sending=float((sent * traffic.latency).sum()),
        processing=float((processed * traffic.latency).max(axis=1).sum() * traffic.processing),
        balance=float(together.max() / together.mean()) if together.any() else 1.0,
    )


def rows_sent(traffic: Traffic, choice: Ints) -> Floats:
    """Return the rows sent from each source to each partition (eqs. 4 and 7), float64[sources, partitions]."""
    partitions = traffic.partitions
    key = traffic.row_class * partitions + choice[traffic.group]
    order = np.argsort(key, kind="stable")
    distinct, first = np.unique(key[order], return_index=True)
    sent = np.zeros((traffic.sources, partitions))
    if len(first):
        largest = np.maximum.reduceat(traffic.rows[order], first)
        np.add.at(sent, (traffic.source[distinct // partitions], distinct % partitions), largest)
    return sent


def rows_processed(traffic: Traffic, choice: Ints) -> Floats:
    """Return the rows of each source that each partition processes (eqs. 6 and 8), float64[sources, partitions]."""
    return added_up(traffic.load, choice, traffic.partitions)
