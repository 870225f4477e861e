"""What the manifest says about the files under ``checkpoint/plait``.

A **layout** says what the rows of a bucket carry. A bucket answers a probe only if its layout has every column, key and
selection that probe needs, so buckets written for earlier plans stay usable by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from plait.plan.columns import TAU
from plait.plan.key_groups import Generation
from plait.sinks.staging import Publication
from plait.stats.cycles import NOTHING_COUNTED, Cycles
from plait.stats.live_keys import LiveKeys

TABLE_BATCH = -1
"""The batch id of table buckets: before every micro-batch."""

END_OF_TIME_US = (1 << 63) - 1
"""The watermark once nothing more will come: later than any event time and its window."""


def oldest_of(marks: Iterable[int | None]) -> int | None:
    """Return the lowest of these, None if one of them is.

    >>> oldest_of([5, 3]), oldest_of([5, None])
    (3, None)
    """
    known = list(marks)
    given = [mark for mark in known if mark is not None]
    return min(given) if given and len(given) == len(known) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Columns of a bucket by name: raw columns, int64 keys (``#k ...``), real values (``#v ...``).

    `selections` are the texts (``Selection.sql``) behind the bits of column ``#bits``; that column is absent when
    there is a single selection, which then holds for every row. `has_tau`: column ``#tau`` (int64 microseconds) is
    present.
    """

    columns: tuple[str, ...]
    keys: tuple[str, ...]
    values: tuple[str, ...]
    selections: tuple[str, ...]
    has_tau: bool

    @property
    def carried(self) -> tuple[str, ...]:
        """The names of all columns but those of the query-set bits."""
        return (*self.columns, *self.keys, *self.values, *((TAU,) if self.has_tau else ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """An immutable Arrow IPC file with the rows of one store partition, sorted by (first index, τ).

    `path` is relative to ``checkpoint/plait``; index files lie beside it. `batch_min`/`batch_max`: batches its rows
    arrived in (`TABLE_BATCH` for tables). `tau_min`/`tau_max` in microseconds, None without τ. `sort_key`: key names
    it is sorted by, () for none. `checksum`: of the whole file, as ``xxh3:<hex>``. `partition_by` and `parallelism`
    are the store's when the bucket was written: a probe finds buckets of an earlier partitioning too.

    In an intermediate store `until_us` is the largest τ that can still join one of its rows (None: any), and
    `started_by` the part whose arrival made the rows, as long as their batch lasts.

    `generation`: the first batch of the one whose tables put the rows into this partition, None without tables.
    `is_copy`: they have their home elsewhere and are here only to be found by a key (`plait.plan.key_groups`).
    """

    store: str
    partition: int
    path: str
    rows: int
    bytes: int
    batch_min: int
    batch_max: int
    tau_min: int | None
    tau_max: int | None
    sort_key: tuple[str, ...]
    layout: Layout
    checksum: str
    partition_by: tuple[str, ...] = ()
    parallelism: int = 1
    until_us: int | None = None
    started_by: int | None = None
    generation: int | None = None
    is_copy: bool = False


BadReason: TypeAlias = Literal["malformed", "no event time", "event time out of range"]
"""Why a row cannot be joined, whatever else is in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRows:
    """How many rows of a source were set aside for one reason. `sample`: one of them, shortened: the text of a
    malformed record, else some of its columns; empty where no column is read.
    """

    reason: BadReason
    rows: int
    sample: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NullKey:
    """How many rows of a source have NULL in `key` (Spark SQL) and so cannot match where it is compared."""

    key: str
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFor:
    """A reason for which rows were stored: all of `selection` (texts of conjuncts) held, and no key of `keys` was
    NULL.
    """

    selection: tuple[str, ...]
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unstored:
    """Rows of a source that arrived in time and were not stored, because no reason in `kept` held for them.

    `tau_max_us`: their largest event time.
    """

    kept: tuple[KeptFor, ...]
    rows: int
    tau_max_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """Rows of a source that were let go because the watermark had passed the windows of their day. `tau_max_us`: their
    largest event time.
    """

    rows: int
    tau_max_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceProgress:
    """What the manifest remembers of one source, cumulated over all batches.

    Of its `rows`, `late` and `bad` ones were not looked at (`bad_rows` says why), `outside` satisfied no selection, and
    `null_keys` were kept out by nothing but a NULL key (`null_keys_by`: rows with NULL, by key; these may be kept for
    another one). `tau_max`: largest τ seen, None before the first row. `active_ms`: clock at the end of the last batch
    with rows of it. `sketch`: per key name the KMV sketch of its values (sorted, smallest hashes). `kept`: rows per
    ``Selection.sql``. `late_before_us`: the highest watermark the stream was
    ever held to; rows of later batches are late if they are older. `unstored` and `forgotten`: rows that a query added
    later will never see.
    """

    source: str
    rows: int = 0
    late: int = 0
    bad: int = 0
    null_keys: int = 0
    tau_min: int | None = None
    tau_max: int | None = None
    active_ms: int | None = None
    sketch: tuple[tuple[str, tuple[int, ...]], ...] = ()
    kept: tuple[tuple[str, int], ...] = ()
    bad_rows: tuple[BadRows, ...] = ()
    null_keys_by: tuple[NullKey, ...] = ()
    outside: int = 0
    late_before_us: int | None = None
    unstored: tuple[Unstored, ...] = ()
    forgotten: tuple[Forgotten, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Undelivered:
    """Results of one query and batch that its sink has not taken yet: spooled Arrow files under the checkpoint.

    They are offered again with every later batch and after a restart, oldest first, until the sink takes them. `shape`
    says how the joined rows in the files become results, and `sink` where they were to go
    (`plait.runtime.outputs.shape`); "": as today's query says.
    """

    query: str
    batch: int
    paths: tuple[str, ...]
    rows: int
    reason: str
    shape: str = ""
    sink: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredRows:
    """An Arrow file of joined rows that wait for their windows of event time to be over. `tau_min` and `tau_max`: the
    first and last event time in it, in microseconds.
    """

    path: str
    rows: int
    bytes: int
    tau_min: int
    tau_max: int
    checksum: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenGroups:
    """What a query has gathered for windows that are not over. `over_until_us`: the groups of windows that end by then
    have been written, None if no window has been over yet. `identity` says what the rows mean: another query of its
    name cannot use them.
    """

    query: str
    identity: str
    over_until_us: int | None
    files: tuple[GatheredRows, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeGroups:
    """Groups of a query that other queries read: `files` of those that the next batch takes in, as rows of the stream
    that is called like it. `identity`: what tells them from the groups of another query.
    """

    stream: str
    identity: str
    files: tuple[GatheredRows, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryProgress:
    """Results of one query so far. `left`: the last batch it took part in, None while it does."""

    query: str
    rows_out: int = 0
    left: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreWindow:
    """How long a store of a stream keeps its rows, in microseconds of event time; None: for ever. `keeps_all`: the
    stream kept all when the store was last in use; `since`: of which batches on, None if that is not known.
    """

    store: str
    window_us: int | None
    keeps_all: bool = False
    since: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """Rows of a bucket from number `row` on."""

    path: str
    row: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """How far an intermediate store is filled. What arrives from batch `since` on fills it by itself; of what was there
    before, the `rows` of one `part` are taken bit by bit along the steps that fill the store, and meet what of the
    other parts arrived before `since`. Not taken yet are those `left`: none, and the store is complete, as it is from
    the first on if it came with the first batch or was filled at once.

    `carried`: the columns and keys that it was to keep when filling began.
    """

    store: str
    part: int
    since: int
    rows: int
    left: tuple[Left, ...]
    carried: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What was stored when queries came that are to have the results of that, too: rows of batches before `since`. The
    files stay until they have them all, whatever becomes of the stores: rows that expire meanwhile, or are written
    again, are found here.
    """

    since: int
    buckets: tuple[Bucket, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FillingUp:
    """How far a query has the results of the past of batch `since`. They are found from one relation, its alias
    `start`: of `rows` rows those `left` have not been taken yet. `asks`: the text of the query, and its windows.
    """

    query: str
    asks: str
    start: str
    since: int
    rows: int
    left: tuple[Left, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The whole state after `batch`. Committing it (an atomic rename) is what commits the batch.

    `watermark_us` is the watermark of the **next** batch, None while some stream that is not idle has sent nothing. It
    bounds what is forgotten; which rows are late each source's `late_before_us` says.
    `plan` identifies the plan in force; `probe_tuples` per edge, cumulated. `queries` names those that are gone too, as
    long as rows are stored of which they may have had results. `windows`: of the stores of streams that
    have buckets. One that no query needs any more **rests**: it keeps what it has for as long as its last window says,
    because the stream's offsets are behind those rows and they could not be read again.
    `cycles`: what the batches showed that plans depend on. `sampled`: the probe tuples that samples of other orders
    have taken, cumulated; they are not in `probe_tuples`. `live_keys`: the distinct values of keys that stores hold.
    `fillings`: of intermediate stores; their `left` are buckets of this manifest.
    `filling_up`: of queries with results of before they came; their `left` are buckets of the `pasts`. `groups`: of the
    queries that group; `made`: of those whose groups others read, by stream. All groups of windows that end by such a
    stream's `late_before_us` have been taken in.
    `generations`: the tables that rows were stored under, the last in force; `copies`: buckets of rows whose homes are
    among `buckets`, for probing alone.
    `ended`: nothing more will come; this was the last batch, and nothing was read for it. `unfed`: how many batches so
    far nothing was read for.
    """

    batch: int
    watermark_us: int | None
    plan: str
    sources: tuple[SourceProgress, ...] = ()
    queries: tuple[QueryProgress, ...] = ()
    buckets: tuple[Bucket, ...] = ()
    publications: tuple[Publication, ...] = ()
    undelivered: tuple[Undelivered, ...] = ()
    probe_tuples: tuple[tuple[str, int], ...] = field(default=())
    windows: tuple[StoreWindow, ...] = ()
    cycles: Cycles = NOTHING_COUNTED
    sampled: int = 0
    live_keys: tuple[LiveKeys, ...] = ()
    fillings: tuple[Filling, ...] = ()
    groups: tuple[OpenGroups, ...] = ()
    made: tuple[MadeGroups, ...] = ()
    ended: bool = False
    unfed: int = 0
    filling_up: tuple[FillingUp, ...] = ()
    pasts: tuple[Past, ...] = ()
    generations: tuple[Generation, ...] = ()
    copies: tuple[Bucket, ...] = ()

    @property
    def oldest_us(self) -> int | None:
        """Before this event time no row can come any more, of whichever stream: what no row from then on can join may
        be forgotten. None: rows of any time can come.
        """
        bars = {each.source: each.late_before_us for each in self.sources}
        return oldest_of([self.watermark_us, *(bars.get(each.stream) for each in self.made)])

    @property
    def spark_batch(self) -> int:
        """What Spark calls the last batch that it read something for, −1 if there was none."""
        return self.batch - self.unfed

    @property
    def named(self) -> tuple[Bucket, ...]:
        """All buckets whose files are needed."""
        return (*self.buckets, *self.copies, *self.of_pasts)

    @property
    def of_pasts(self) -> tuple[Bucket, ...]:
        """The buckets that are kept for queries that are to have the results of the past."""
        return tuple(bucket for past in self.pasts for bucket in past.buckets)
