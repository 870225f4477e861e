"""What a kind of sink is: what it accepts, and what it does at each moment of a batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import pyarrow as pa

from plait.query.model import SinkSpec
from plait.sinks.delivery import Delivery, Projection, Spooled
from plait.sinks.staging import Publication

SinkName: TypeAlias = Literal["parquet", "csv", "json", "console", "memory", "noop", "foreach"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """A described sink. `function` only for ``foreach``."""

    spec: SinkSpec
    function: Callable[[Any, int], None] | None = None


class Results(Protocol):
    """The results of one query and batch, spooled in the checkpoint as files that hold at least a row each."""

    @property
    def query(self) -> str:
        """The query's name."""

    @property
    def batch(self) -> int:
        """The batch the results were found in."""

    @property
    def files(self) -> int:
        """How many files hold them, a Spark task each."""

    @property
    def kept(self) -> MutableMapping[int, pa.Table]:
        """What this process keeps of the query's results, by batch."""

    def frame(self) -> Any:
        """Return them as a Spark DataFrame; each action computes it anew."""

    def table(self) -> pa.Table:
        """Return them as an Arrow table, in the schema of the query's results."""


class SinkKind(ABC):
    """One kind of sink. Its objects hold nothing: what a query says of its sink is in the `SinkSpec`.

    `required` are the options it cannot do without; `by_name` says that it stores columns by name, so that names must
    differ; `script_problem` why a script cannot name it, None if it can.
    """

    name: ClassVar[SinkName]
    required: ClassVar[tuple[str, ...]] = ()
    by_name: ClassVar[bool] = False
    script_problem: ClassVar[str | None] = None

    def delivery(self, spec: SinkSpec, projection: Projection) -> Delivery:
        """Return how probe tasks hand over the results: what `deliver` gets, unless they need not be spooled."""
        return Spooled(query=projection.query, columns=projection.joined)

    @abstractmethod
    def deliver(self, sink: Sink, results: Results) -> tuple[Publication, ...]:
        """Take one batch's spooled results; return what is to be published (renamed) on commit.

        Called before the commit, and again with the same query and batch if the process dies before it. Raises
        SinkError, OSError, ArrowException or Spark's exceptions: then the results are kept and offered again.
        """

    def directory(self, spec: SinkSpec) -> str | None:
        """Return the directory it writes to, None if it writes to none."""
        return None

    def recover(self, spec: SinkSpec, query: str) -> None:
        """Remove what attempts that were never committed have left. What was committed has been published by then."""
        return None
