"""A plan in the making, as the steps of `plait.optimizer.assemble.build` hand it on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from plait.optimizer.assemble.covering import CoveredQueries
from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.options import PlanOptions
from plait.optimizer.probe_orders import ProbeOrder
from plait.plan.model import ProbeTree, Store
from plait.plan.relations import StoreName


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What flows along an edge. Sizes are per window of the starting relation, `..._per_s` per second of event time.

    `arriving` tuples come in, each counted once, and `results` match: of a history that begins with nothing, where an
    arrival on average finds a part 1/j of the others (papers 000 and 002). A window that slides is always full, so in
    the steady state only streams that are kept for ever take that share.
    """

    arriving: float
    arriving_per_s: float
    results: float
    steady_per_s: float
    steady_results_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A plan in the making: what is given, then what the steps have made of it so far. `flows`: by edge."""

    queries: CoveredQueries
    orders: tuple[ProbeOrder, ...]
    options: PlanOptions
    cardinality: Cardinality
    store_name: StoreName
    stores: tuple[Store, ...] = ()
    trees: tuple[ProbeTree, ...] = ()
    flows: Mapping[str, Flow] = field(default_factory=dict)
