"""All that an explanation shows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from plait.errors import OptionError
from plait.plan.explain.costs import Comparison
from plait.plan.explain.run_counts import Measured
from plait.plan.model import Plan
from plait.plan.pruning import part_for
from plait.spelling import did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Which part of a plan is shown: what these `queries` need, and of that what begins with a row of these `streams`;
    (): of all.
    """

    queries: tuple[str, ...] = ()
    streams: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """Say what is left out."""
        needed = (
            f" that {' and '.join(self.queries)} need{'' if len(self.queries) > 1 else 's'}" if self.queries else ""
        )
        begun = f" when a row of {' or '.join(self.streams)} arrives" if self.streams else ""
        return f"Shown is the part of the plan{needed}{begun}; the costs are those of all queries"

    def part(self, plan: Plan) -> Plan:
        """Return the part. Raises OptionError for a query or stream that the plan does not know."""
        _require("query", "queries", self.queries, plan.queries)
        _require("stream", "streams", self.streams, [store.source for store in plan.stores if store.source is not None])
        return part_for(plan, self.queries or None, self.streams or None) if self != EVERYTHING else plan


EVERYTHING = Shown()


def _require(kind: str, kinds: str, asked: Iterable[str], known: Iterable[str]) -> None:
    names = list(dict.fromkeys(known))
    for name in asked:
        if name not in names:
            raise OptionError(
                f"the plan has no {kind} '{name}'{did_you_mean(name, names)}; leave it out to see all {kinds}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A plan and the `part` of it that is shown; what else could be done, what was counted, and what the reader should
    know, where there is any of it.
    """

    plan: Plan
    part: Plan
    comparison: Comparison | None = None
    measured: Measured | None = None
    notes: tuple[str, ...] = ()
