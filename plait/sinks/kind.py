"""What a kind of sink is: what it accepts, and what it does at each moment of a batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import pyarrow as pa

from plait.errors import SinkError
from plait.query.model import SinkSpec
from plait.sinks.claims import Claim, ClaimedPlace
from plait.sinks.delivery import Delivery, Projection, Spooled
from plait.sinks.options import SinkOption, SinkProblem, option_problems
from plait.sinks.staging import Publication
from plait.sinks.storable import SparkType
from plait.spelling import folded

SinkName: TypeAlias = Literal[
    "parquet", "csv", "json", "console", "delta", "jdbc", "kafka", "memory", "noop", "foreach", "foreach_arrow"
]


ResultColumn: TypeAlias = tuple[str | None, SparkType | None]
"""Name and type of a column of the results, None where they are not known yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """A described sink. `function` only for ``foreach`` and ``foreach_arrow``."""

    spec: SinkSpec
    function: Callable[[Any, int], None] | None = None


class Connection(Protocol):
    """What a sink keeps open between batches."""

    def close(self) -> None:
        """Let go of it."""


class Known:
    """Stands for a place to which this process has written the batch before, so that it need not ask there."""

    def close(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What a place remembers of a query: the last batch of it that it has, and the mark of its results, None if that is
    not told any more.
    """

    batch: int
    mark: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """The results of one query and batch, spooled in the checkpoint of this id.

    `rows`: a Spark DataFrame, computed anew by each action, in so many `tasks`, each with a row at least; where the
    kind of sink `takes_arrow`, an Arrow table in the schema of the query's results. `kept`: what this process keeps of
    the query's results, by batch.

    For sinks that remember batches: `parts`, DataFrames of a task each, which are the same rows, to be gone through
    once; `last`, the last batch the checkpoint has committed; `mark`, by which these results are told from others of
    the same number, of a copy of the checkpoint; `marks`, those of all batches of the query that the sink may have, by
    batch; `connections`, what this process keeps open until the run ends.
    """

    query: str
    batch: int
    checkpoint: str
    tasks: int
    rows: Any
    kept: MutableMapping[int, pa.Table]
    parts: Iterable[Any] = ()
    last: int = -1
    mark: str = ""
    marks: Mapping[int, str] = field(default_factory=dict)
    connections: MutableMapping[str, Connection] = field(default_factory=dict)

    def knows(self, last: Note) -> bool:
        """Tell whether a note that is no batch before this one is of one that waits with it, and by its mark. That the
        checkpoint has come to as many batches tells nothing, since one that was restored does so again by other ones;
        it decides only where the note has no mark.
        """
        if last.mark is None:
            return last.batch <= self.last
        return last.mark == {**self.marks, self.batch: self.mark}.get(last.batch)

    def require_known(self, last: Note | None, place: str, advice: str) -> None:
        """Raise SinkError if a place has more of the query than the checkpoint knows of, by its note."""
        if last is not None and last.batch >= self.batch and not self.knows(last):
            raise self.unknown(last.batch, place, advice)

    def unknown(self, batch: int, place: str, advice: str) -> SinkError:
        """Return what is said of a batch in a place that is not of this history of the checkpoint."""
        return SinkError(
            f"query '{self.query}': {place} has results of batch {batch} of this checkpoint, which itself has come to "
            f"batch {self.last} only, or to other results in it: it was restored from a backup, or a copy of it goes "
            f"on. {advice}"
        )

    def are_in(self, last: Note | None) -> bool:
        """Tell whether a place has these results, by its note. One that is not known is of another history of the
        checkpoint, which does not have them.
        """
        return last is not None and last.batch >= self.batch and self.knows(last)


class SinkKind(ABC):
    """One kind of sink. Its objects hold nothing: what a query says of its sink is in the `SinkSpec`.

    `options` are those it takes, besides all whose names begin with `option_prefix` if that is not empty; `required`
    those it cannot do without, with `examples` of them; `by_name` says that it stores columns by name, so that names
    must differ; `takes_arrow` that it takes results as Arrow rather than from Spark; `script_problem` why a script
    cannot name it, None if it can.
    """

    name: ClassVar[SinkName]
    options: ClassVar[tuple[SinkOption, ...]] = ()
    option_prefix: ClassVar[str] = ""
    required: ClassVar[tuple[str, ...]] = ()
    examples: ClassVar[Mapping[str, str]] = MappingProxyType({})
    by_name: ClassVar[bool] = False
    takes_arrow: ClassVar[bool] = False
    script_problem: ClassVar[str | None] = None

    def problems(self, spec: SinkSpec) -> list[SinkProblem]:
        """Return what is wrong with what the user says of the sink."""
        of_options = option_problems(self.name, spec.options, self.options, self.option_prefix)
        given = {folded(name) for name, value in spec.options if value}
        missing = (needed for needed in self.required if folded(needed) not in given)
        return [
            *of_options,
            *(
                SinkProblem(message=f"{self.name} needs the {needed} to write to", example=self.examples.get(needed))
                for needed in missing
            ),
        ]

    def column_problems(self, spec: SinkSpec, columns: Sequence[ResultColumn]) -> list[SinkProblem]:
        """Return why results with these columns cannot be written, as far as names and types are known."""
        problems = []
        for place, (name, type_) in enumerate(columns):
            advice = None if type_ is None else self.type_problem(type_)
            if advice is not None:
                shown = f"column '{name}'" if name is not None else f"column {place + 1}"
                message = f"{shown} has type {type_}, which {self.name} cannot store; {advice}"
                problems.append(SinkProblem(message=message, column=place))
        return problems

    def type_problem(self, type_: SparkType) -> str | None:
        """Say what to do instead of writing a column of this type, None if it can be written and read back."""
        return None

    def wants_schema(self, types: Sequence[SparkType]) -> bool:
        """Tell whether it wants the schema of results of these types as Arrow has it."""
        return False

    def delivery(self, spec: SinkSpec, projection: Projection) -> Delivery:
        """Return how probe tasks hand over the results: what `deliver` gets, unless they need not be spooled."""
        return Spooled(query=projection.query, columns=projection.joined)

    def connectors(self, spec: SinkSpec) -> tuple[str, ...]:
        """Return the formats that Spark must know for it."""
        return (self.name,)

    def remembers(self, spec: SinkSpec) -> bool:
        """Tell whether what it writes to remembers which batches of a query it has, noted together with the results. It
        gets a batch's results after the commit, when they are settled, and each batch once.
        """
        return False

    @abstractmethod
    def deliver(self, sink: Sink, results: Results) -> tuple[Publication, ...]:
        """Take one batch's spooled results; return what is to be published (renamed) on commit.

        Called before the commit, and again with the same query and batch if the process dies before it. Raises
        SinkError, OSError, ArrowException or Spark's exceptions: then the results are kept and offered again.

        Of a sink that remembers: called after the commit, one batch of a query after the other, and again if it is not
        known whether it had been done; then it does nothing if it had. Returns nothing.
        """

    def has(self, sink: Sink, results: Results) -> bool:
        """Tell whether what it writes to has a batch, without writing there. Only of a sink that remembers, and after
        the commit; raises what `deliver` does.
        """
        raise NotImplementedError(self.name)

    def directory(self, spec: SinkSpec) -> str | None:
        """Return the directory it writes to, None if it writes to none."""
        return None

    def place(self, spec: SinkSpec) -> str | None:
        """Return the name of what it writes to, by which one place is told from another: not how it is reached."""
        return self.directory(spec)

    def claimed(self, spec: SinkSpec, claim: Claim) -> ClaimedPlace:
        """Return the place that the claim's results go to, with what may be done to it before a run."""
        return ClaimedPlace(claim=claim)
