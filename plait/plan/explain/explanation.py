"""All that an explanation shows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from plait.errors import OptionError
from plait.plan.explain.closings import Closing
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
        need = "need" if len(self.queries) > 1 else "needs"
        needed = f"that {' and '.join(self.queries)} {need}" if self.queries else "that is used"
        begun = f" when a row of {' or '.join(self.streams)} arrives" if self.streams else ""
        return f"Shown is the part of the plan {needed}{begun}; the costs are those of all queries"

    def require(self, queries: Iterable[str], streams: Iterable[str]) -> None:
        """Raise OptionError for a query or stream that is none of these."""
        _require("query", "queries", self.queries, queries)
        _require("stream", "streams", self.streams, streams)

    def part(self, plan: Plan) -> Plan:
        """Return the part. Raises OptionError for what the plan does not know, and if nothing is left."""
        self.require(plan.queries, [store.source for store in plan.stores if store.source and not store.is_table])
        part = part_for(plan, self.queries or None, self.streams or None) if self != EVERYTHING else plan
        if self.queries and self.streams and not part.trees:
            raise OptionError(
                f"{' and '.join(self.queries)} wait{'' if len(self.queries) > 1 else 's'} for no row of "
                f"{' or '.join(self.streams)}; leave --stream out to see what is waited for"
            )
        return part


EVERYTHING = Shown()


def _require(kind: str, kinds: str, asked: Iterable[str], known: Iterable[str]) -> None:
    names = sorted(set(known))
    for name in asked:
        if name not in names:
            hint = did_you_mean(name, names)
            rest = f"{hint} Without" if hint.endswith("?") else f"{hint}; without"
            raise OptionError(f"the plan has no {kind} '{name}'{rest} a name all {kinds} are shown")


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A plan and the `part` of it that is shown; what else could be done, what was counted, what the reader should
    know, and what of the shown queries comes by the watermark, where there is any of it.
    """

    plan: Plan
    part: Plan
    comparison: Comparison | None = None
    measured: Measured | None = None
    notes: tuple[str, ...] = ()
    closings: tuple[Closing, ...] = ()
