"""The random case of a seed. The same seed gives the same case on every machine and Python version."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import pyarrow as pa

from tests.property.arrivals import Arrivals, make_punctual, random_batches, random_taus
from tests.property.case import Case, CaseColumn, CaseSource, RunOptions
from tests.property.queries import CROSS_ROWS, NO_THETAS, Thetas, random_query
from tests.property.values import BY_NAME, KINDS, TEXTS_OF_OTHERS, Domain, Kind, time_value

TREES = ("flat", "left-deep", "chain", "bushy")
TOGETHER = ("dppick", "ilp", "adhoc")
STRATEGIES = ("fixed", "selectivity", "greedy", "shared", "independent", *TOGETHER, "random", "random", *TREES)
SWITCHABLE = ("fixed", "selectivity", "greedy", "shared", *TOGETHER, "random", "random", *TREES[1:])
"""Strategies whose plans have the same stores, so that one can follow another on the same state; `independent` has
others.
"""
_EPOCHS_US = (1_709_000_000_000_000, 0, -1_000_000, 1_709_000_000_000_000)
_DAY_US = 86_400_000_000
_DAYS_US = (19_780 * _DAY_US, 0, -_DAY_US)
_ODD_NAMES = ("odd name", "dot.ted", "quo`te", "Größe", "select", "#hash")


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """The time scale of a case: τ are `base_us` plus multiples of `unit_us`; a batch spans about `span` units."""

    base_us: int
    unit_us: int
    span: int
    jitter: int

    @property
    def time_kinds(self) -> str:
        """The kinds of columns that can hold these τ."""
        return "mna" if self.unit_us == _DAY_US else "mmn"

    @property
    def step_us(self) -> int:
        """What all τ are multiples of."""
        return self.unit_us if self.unit_us == _DAY_US else 1

    def window_choices_us(self, batches: int) -> list[int]:
        """Return windows from the shortest possible to longer than everything."""
        unit, span = self.unit_us, self.span
        ages = [1, unit, 3 * unit, span * unit, span * unit * batches // 2 + 1, 2 * span * unit * batches + 10**6]
        return ages + ages[3:] * 2


def random_case(
    seed: int, *, late: bool = False, rows_scale: float = 1.0, queries: int | None = None, thetas: bool = False
) -> Case:
    """Return the case of this seed. `rows_scale` below 1 gives the same kind of case with fewer rows; `queries` fixes
    their number. `thetas`: with join predicates other than equalities.
    """
    rng = random.Random(f"{seed} {late} {rows_scale}{' thetas' if thetas else ''}")
    batches = rng.choice((3, 4, 6) if late else (1, 2, 3, 4, 5, 6, 8))
    unit_us = rng.choice((1, 1_000, 1_000_000, 3_600_000_000, _DAY_US))
    span = rng.choice((1, 2, 5, 10, 40))
    clock = Clock(
        base_us=rng.choice(_DAYS_US if unit_us == _DAY_US else _EPOCHS_US),
        unit_us=unit_us,
        span=span,
        jitter=rng.choice((0, 1, span // 2, span)),
    )
    count = rng.choice((1, 2, 2, 3, 3, 4, 5, 6))
    drawn = rng.choice((1, 1, 2, 2, 3, 4))
    queries = drawn if queries is None else queries
    largest = rng.choice((2, 2, 2, 3, 3, 3, 4, 4, 5) if thetas else (2, 3, 3, 4, 5, 6))
    rows = max(3, int(rng.choice((12, 25, 40, 60)) * rows_scale * (1.0, 1.0, 1.0, 0.6, 0.45, 0.4)[largest - 1]))
    domain = max(2, int(rows * rng.uniform(0.12, 0.6) * (1.0 if largest < 5 else 1.2)))
    skew = 1.0 if largest < 5 else 0.0
    choices = clock.window_choices_us(batches)
    choices = choices[-1:] if largest > 4 and rng.random() < 0.6 else choices
    drawn_thetas = Thetas(instead=rng.choice((0.0, 0.3, 1.0)), beside=rng.choice((0.3, 0.6))) if thetas else NO_THETAS
    kinds = (*KINDS, *map(BY_NAME.__getitem__, "sssffil")) if thetas else KINDS
    # Some are frequent, so that sources have them in common.
    kinds = (*kinds, *rng.choices(kinds, k=4) * (len(kinds) // 3))
    sources = _random_sources(rng, clock, batches, count, rows, domain, choices, kinds=kinds, skew=skew, late=late)
    return Case(
        seed=seed,
        sources=sources,
        queries=tuple(
            random_query(
                rng, f"q{number}", sources, rng.randint(1, largest) if number else largest, choices, drawn_thetas
            )
            for number in range(queries)
        ),
        batches=batches,
        options=random_options(rng, batches),
        late=late,
    )


def random_options(rng: random.Random, batches: int) -> RunOptions:
    """Draw a way to run a case."""
    strategy = rng.choice(STRATEGIES)
    switching = rng.random() < 0.25
    return RunOptions(
        strategies=tuple(rng.choice(SWITCHABLE) if switching else strategy for _ in range(batches)),
        parallelism=rng.randint(1, 5),
        routing=rng.choice(("local", "shuffle")),
        block_rows=rng.choice((1, 3, 16, 1024, 65536)),
        sliced_ingest=rng.choice((1, 1, 2, 3)),
        restarts=frozenset(batch for batch in range(1, batches) if rng.random() < 0.2),
        compactions=frozenset(batch for batch in range(1, batches) if rng.random() < 0.3),
        weak_hash=rng.random() < 0.2,
        storage_rows=rng.choice((None, 0.0, 10.0, 1e3, 1e6)),
        derives=rng.random() < 0.4,
        fill_rows=rng.choice((None, 1, 3, 8)),
        abreast_steps=rng.choice((0, 0, 24)),
        tables=frozenset(batch for batch in range(batches) if rng.random() < 0.4),
    )


def _random_sources(
    rng: random.Random,
    clock: Clock,
    batches: int,
    count: int,
    rows: int,
    domain: int,
    windows: list[int],
    *,
    kinds: tuple[Kind, ...],
    skew: float,
    late: bool,
) -> tuple[CaseSource, ...]:
    names = rng.sample(("orders", "lines", "clicks", "trips", "weather", "events", "users", "items"), count)
    tables = {name for name in names[1:] if rng.random() < 0.25}
    drafts = []
    arrivals = {}
    for name in names:
        size = (
            CROSS_ROWS - rng.randrange(3)
            if rng.random() < 0.08
            else rng.choice((rows, rows, rows // 2, rows + 7, 0 if rng.random() < 0.1 else rows))
        )
        columns = _random_columns(rng, kinds, None if name in tables else clock)
        drafts.append((name, columns, size))
        if name not in tables:
            batch_of = random_batches(rng, size, batches)
            taus = random_taus(rng, batch_of, clock.base_us, clock.unit_us, clock.span, clock.jitter)
            delay = clock.unit_us * rng.choice((0, 0, 1, clock.jitter, 2 * clock.jitter + 1, 3 * clock.span))
            arrivals[name] = Arrivals(delay_us=delay, taus=taus, batch_of=batch_of)
    if late:
        _delay_some(rng, arrivals, clock, batches)
    else:
        make_punctual(rng, list(arrivals.values()), batches, clock.step_us)
    if rng.random() < 0.15:
        _spoil(rng, arrivals)
    sources = []
    for name, columns, size in drafts:
        found = arrivals.get(name)
        sources.append(
            CaseSource(
                name=name,
                columns=columns,
                rows=_random_rows(rng, columns, size, domain, None if found is None else found.taus, skew),
                time=None if found is None else columns[-1].name,
                window_us=None if found is None else rng.choice([None, *windows]),
                delay_us=0 if found is None else found.delay_us,
                keep_all=found is not None and rng.random() < 0.08,
                at_random=found is not None and rng.random() < 0.1,
                batch_of=() if found is None else tuple(found.batch_of),
            )
        )
    return tuple(sources)


def _delay_some(rng: random.Random, arrivals: dict[str, Arrivals], clock: Clock, batches: int) -> None:
    """Move some τ far into the past and make the streams less patient, so that rows are late."""
    for stream in arrivals.values():
        stream.delay_us //= rng.choice((1, 2, 100))
        stream.taus[:] = [
            tau - clock.unit_us * clock.span * rng.randint(1, batches)
            if rng.random() < 0.2 and tau is not None
            else tau
            for tau in stream.taus
        ]


def _spoil(rng: random.Random, arrivals: dict[str, Arrivals]) -> None:
    """Turn some τ into NULL, sparing those that carry a watermark, so that nothing becomes late by it.

    A smaller maximum can only lower the watermark, never make a row late.
    """
    for stream in arrivals.values():
        stream.taus[:] = [None if rng.random() < 0.1 else tau for tau in stream.taus]


def _random_columns(rng: random.Random, kinds: tuple[Kind, ...], clock: Clock | None) -> tuple[CaseColumn, ...]:
    """Return ``k`` (a small integer, in every source), one to five others and, last, the time column of a stream.

    `clock` None: of a table.
    """
    columns = [CaseColumn(name="k", kind=BY_NAME[rng.choice("iillg")])]
    for _ in range(rng.randint(1, 5)):
        kind = rng.choice(kinds)
        number = sum(1 for column in columns if column.kind is kind)
        is_read = kind.name in TEXTS_OF_OTHERS  # by the oracle, which knows them by name
        name = rng.choice(_ODD_NAMES) if rng.random() < 0.04 and not is_read else f"{kind.name}{number}"
        if name.lower() not in {column.name.lower() for column in columns}:
            columns.append(CaseColumn(name=name, kind=kind))
    if clock is not None:
        columns.append(CaseColumn(name=rng.choice(("ts", "ts", "at_time")), kind=BY_NAME[rng.choice(clock.time_kinds)]))
    return tuple(columns)


def _random_rows(
    rng: random.Random,
    columns: tuple[CaseColumn, ...],
    size: int,
    domain: int,
    taus: list[int | None] | None,
    skew: float,
) -> pa.Table:
    arrays = []
    for number, column in enumerate(columns):
        if taus is not None and number == len(columns) - 1:
            values = [None if tau is None else time_value(column.kind, tau) for tau in taus]
        else:
            size_of_domain = domain if rng.random() > 0.15 * skew else max(2, domain // 3)
            drawn = Domain(
                size=size_of_domain,
                null_share=rng.choice((0.0, 0.0, 0.05, 0.2, 1.0 if rng.random() < 0.05 else 0.1)),
                hot_share=rng.choice((0.0, 0.0, 0.0, 0.1 * skew)),
            )
            values = [drawn.draw(column.kind, rng) for _ in range(size)]
        arrays.append(pa.array(values, column.kind.arrow))
    table = pa.table(arrays, names=[column.name for column in columns])
    if size > 2 and rng.random() < 0.3:
        table = _with_duplicates(rng, table, keep=None if taus is None else columns[-1].name)
    return table


def _with_duplicates(rng: random.Random, table: pa.Table, keep: str | None) -> pa.Table:
    """Repeat some rows in place of others; the time column stays, because batches depend on it."""
    rows = [rng.randrange(table.num_rows) if rng.random() < 0.2 else row for row in range(table.num_rows)]
    repeated = table.take(rows)
    return repeated if keep is None else repeated.set_column(table.num_columns - 1, keep, table.column(keep))


def all_punctual(case: Case) -> Case:
    """Return the same case in one single batch: nothing can be late there."""
    sources = tuple(
        source if source.is_table else replace(source, batch_of=(0,) * source.rows.num_rows) for source in case.sources
    )
    options = replace(
        case.options, strategies=case.options.strategies[:1], restarts=frozenset(), compactions=frozenset()
    )
    return replace(case, sources=sources, batches=1, options=options)
