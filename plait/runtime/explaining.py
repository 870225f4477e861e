"""Explain a plan of a run: with the statistics there are by now, beside the baselines and what was measured."""

from __future__ import annotations

from collections.abc import Iterable

from plait.adapt.forecast import forecast
from plait.adapt.planning import PlanRequest
from plait.optimizer.advise.comparing import compare
from plait.optimizer.assemble.estimates import reestimated
from plait.optimizer.estimate.cardinality import Cardinality
from plait.plan.coverage import computes
from plait.plan.explain import EVERYTHING, ExplainFormat, Measured, Shown, checked_format, explain, wording
from plait.plan.model import Plan
from plait.query.model import Query
from plait.sql.select.closings import closings_of
from plait.state.model import Manifest


def explained_plan(
    request: PlanRequest,
    plan: Plan,
    manifest: Manifest | None,
    measured: Measured | None,
    format: ExplainFormat,
    more: tuple[str, ...] = (),
    shown: Shown = EVERYTHING,
    *,
    baselines: bool = True,
) -> str:
    """Return the explanation. Plan and `baselines` are estimated from the same statistics, those of `manifest`.
    `more`: what else the reader should know; `shown`: which part of the plan.

    Raises OptionError for an unknown format, and for a query or stream that is not there.
    """
    checked_format(format)
    statistics = forecast(request.options.sources, manifest)
    fits = computes(plan, request.queries)
    return explain(
        reestimated(plan, Cardinality(statistics=statistics)),
        format,
        comparison=compare(plan, request.queries, statistics, request.options) if fits and baselines else None,
        measured=measured,
        notes=(*_notes(plan, request.queries, fits, measured), *more),
        closings=closings_of(request.queries, request.options.sources),
        shown=shown,
    )


def explained_alone(
    request: PlanRequest, manifest: Manifest | None, aside: Iterable[str], format: ExplainFormat, shown: Shown
) -> str:
    """Return how the queries of a request would be answered by themselves, where some of them are set aside, so that no
    plan in force knows them: why is what `aside` tells. Raises OptionError as `explained_plan` does.
    """
    more = (*aside, "Shown is how what is asked about would be answered by itself, not what is in force")
    return explained_plan(request, request.plan(manifest), manifest, None, format, more, shown)


def _notes(plan: Plan, queries: tuple[Query, ...], fits: bool, measured: Measured | None) -> list[str]:
    if not fits:
        return [_difference(plan, queries)]
    if measured is None:
        return ["Estimates rest on what the sources declare; nothing has been measured yet"]
    notes = ["Estimates rest on what the sources declare and on what was measured where they are silent"]
    windows = [store.window_us for store in plan.stores if store.window_us is not None]
    if measured.span_us and windows and measured.span_us > min(windows) * measured.batches:
        length = wording.span(measured.span_us // measured.batches)
        notes.append(
            f"A batch brings {length} of event time, more than some windows ({wording.duration(min(windows))}): tuples "
            "that arrive together find each other from one side only, so edges differ more than their sum"
        )
    return notes


def _difference(plan: Plan, queries: tuple[Query, ...]) -> str:
    asked = {query.name for query in queries}
    added, dropped = sorted(asked - set(plan.queries)), sorted(set(plan.queries) - asked)
    parts = [f"without {', '.join(added)}" if added else "", f"with {', '.join(dropped)}" if dropped else ""]
    how = " and ".join(part for part in parts if part)
    if not how:
        return (
            "This plan is not compared: the queries have other definitions now, and the next run changes it, or one of "
            "their conditions compares what has a type that Spark alone can tell"
        )
    return f"This plan is for other queries than there are now ({how}), so it is not compared; the next run changes it"
