"""`plait advise FILE`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated

import typer

from plait.cli.arguments import ADVICE_FORMATS, Conf, Master, Parallelism, ScriptFile
from plait.cli.execution import Choices, Execution, settle
from plait.cli.opened_session import opened_session
from plait.cli.script import ScriptText, read_sound_script
from plait.errors import OptionError
from plait.query.model import Query, Source
from plait.sql.expressions.scope import SchemaUnknownError
from plait.stats.declared import declared_statistics
from plait.stats.model import Statistics

if TYPE_CHECKING:
    from plait.runtime.sampling import SampledSource

_PATIENCE_S = 3.0
"""How long the search for the best plan may take where the script does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Basis:
    """What the advice rests on. `read`: what was sampled, `measured`: what that showed."""

    queries: tuple[Query, ...]
    sources: tuple[Source, ...]
    statistics: Statistics
    read: tuple[SampledSource, ...] = ()
    measured: Statistics = field(default_factory=Statistics)


def advise(
    file: ScriptFile,
    sample: Annotated[
        int | None,
        typer.Option(
            metavar="ROWS",
            min=1,
            help="Measure the sources on at most so many rows of each, such as 10000; starts Spark.",
        ),
    ] = None,
    output_format: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help=f"One of {', '.join(ADVICE_FORMATS)}.")
    ] = "text",
    parallelism: Parallelism = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Say what sharing would save, which intermediate stores pay, what each query costs and keeps, and which numbers
    are missing.

    It rests on the statistics the script declares and, with --sample, on what a few rows of each source show.
    """
    # Imported here because planning takes a while to load, which the other commands must not wait for.
    from plait.cli.advice_text import FORMATS
    from plait.cli.plan_options import plan_options
    from plait.optimizer.advise.advice import advise as advise_on
    from plait.sql.select.closings import closings_of

    if output_format not in ADVICE_FORMATS:
        raise OptionError(f"unknown format '{output_format}'; expected one of {', '.join(ADVICE_FORMATS)}")
    script = read_sound_script(file)
    execution = settle(script, Choices(master=master, conf=tuple(conf or ())))
    basis = _declared(script) if sample is None else _sampled(execution, sample)
    if not basis.queries:
        raise OptionError(f"'{file}' has no query to give advice on; add one with CREATE QUERY")
    said = dict(execution.settings)
    options = plan_options(said, basis.sources, "ilp", parallelism)
    if "plait.time_limit" not in said:
        options = replace(options, time_limit_s=_PATIENCE_S)
    closings = closings_of(basis.queries, basis.sources)
    advice = advise_on(basis.queries, basis.statistics, options, closings)
    typer.echo(FORMATS[output_format](advice, basis.read, basis.measured), nl=False)


def _declared(script: ScriptText) -> _Basis:
    loaded = script.load()
    return _Basis(queries=loaded.queries, sources=loaded.read, statistics=declared_statistics(loaded.read))


def _sampled(execution: Execution, rows: int) -> _Basis:
    """Open Spark and measure. Raises what a run would raise for a source or query that Spark refuses."""
    from plait.runtime.inputs.opening import open_source, schema_of
    from plait.runtime.sampling import take_sample
    from plait.stats.combine import with_measured

    formats = execution.script.formats()
    with opened_session(execution.master, execution.conf, lambda text: None, formats=formats) as spark:
        try:
            loaded = execution.script.load()
        except SchemaUnknownError:
            loaded = execution.script.load(lambda source: schema_of(open_source(spark, source).frame))
        sample = take_sample(spark, loaded, rows=rows)
    statistics = with_measured(declared_statistics(sample.sources), sample.statistics)
    return _Basis(
        queries=sample.queries,
        sources=sample.sources,
        statistics=statistics,
        read=sample.read,
        measured=sample.statistics,
    )
