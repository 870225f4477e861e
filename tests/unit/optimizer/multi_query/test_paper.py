"""Figure 3 and section V.2 of paper 000, with the reference formulation."""

from __future__ import annotations

import pytest

from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.estimate.join_sizes import JoinSizes
from plait.optimizer.examples import example_options, example_query, example_statistics
from plait.query.model import Query
from tests.unit.optimizer.multi_query.paper import (
    Candidate,
    Order,
    Sub,
    apply_partitioning,
    candidate_orders,
    groups,
    partitioning_candidates,
    whole,
)
from tests.unit.optimizer.multi_query.reference import constraints, optimum

Q1 = example_query("q1", "r.b = s.b", "s.c = t.c")
Q2 = example_query("q2", "s.c = t.c", "t.d = u.d")
OPTIONS = example_options("ilp", parallelism=2)
STATISTICS = example_statistics(OPTIONS)


def written(order: Order) -> str:
    return " ".join("".join(unit).upper() for unit in order)


def decorated(candidate: Candidate) -> str:
    """Write ⟨R, S[b]⟩ as ``R S[b]``."""
    return " ".join(
        "".join(result[0]).upper() + (f"[{key[1].split('`')[1]}]" if key else "") for result, key in candidate.order
    )


def listed(sub: Sub) -> dict[str, set[str]]:
    return {start.upper(): {written(order) for order in candidate_orders(sub, start)} for start in sub.starts()}


def test_materializable_intermediate_results_are_those_of_figure_3() -> None:
    found = {unit for query in (Q1, Q2) for unit in whole(query).mirs()}
    assert {"".join(unit).upper() for unit in found} == {"R", "S", "T", "U", "RS", "ST", "TU"}


def test_candidate_probe_orders_are_those_of_figure_3() -> None:
    assert listed(whole(Q1)) == {"R": {"R S T", "R ST"}, "S": {"S T R", "S R T"}, "T": {"T S R", "T RS"}}
    assert listed(whole(Q2)) == {"S": {"S T U", "S TU"}, "T": {"T U S", "T S U"}, "U": {"U T S", "U ST"}}
    assert listed(Sub(query=Q1, aliases=("r", "s"))) == {"R": {"R S"}, "S": {"S R"}}
    assert listed(Sub(query=Q1, aliases=("s", "t"))) == {"S": {"S T"}, "T": {"T S"}}
    assert listed(Sub(query=Q2, aliases=("t", "u"))) == {"T": {"T U"}, "U": {"U T"}}


def of_r() -> tuple[Candidate, ...]:
    sub, partitionings = whole(Q1), partitioning_candidates((Q1, Q2))
    sizes = JoinSizes(Q1, Cardinality(statistics=STATISTICS), OPTIONS)
    return tuple(
        candidate
        for order in candidate_orders(sub, "r")
        for candidate in apply_partitioning(sub, order, partitionings, sizes, OPTIONS)
    )


def test_partitioning_is_applied_to_the_orders_of_q1_and_r_as_in_figure_3() -> None:
    assert {decorated(candidate) for candidate in of_r()} == {
        *("R S[b] T[c]", "R S[c] T[c]", "R S[b] T[d]", "R S[c] T[d]"),
        *("R ST[b]", "R ST[d]"),
    }
    prefixes = {decorated(Candidate(order=step[0], steps=(), costs=())) for each in of_r() for step in each.steps}
    assert prefixes - {decorated(candidate) for candidate in of_r()} == {"R S[b]", "R S[c]"}


def test_constraints_are_those_of_figure_3() -> None:
    """One order for R; an order over ST forces one of ⟨S,T⟩ and one of ⟨T,S⟩; an order forces its steps."""
    made = groups((Q1, Q2), STATISTICS, OPTIONS)
    names = {
        ("x", number, place): decorated(candidate)
        for number, group in enumerate(made)
        for place, candidate in enumerate(group.candidates)
    }
    number = next(n for n, group in enumerate(made) if group.fills is None and group.start == "r")
    found = [
        (each.name, [(value, names.get(variable) or decorated(_prefix(variable))) for variable, value in each.terms])
        for each in constraints(made)
        if each.name not in {"partitioning", "one partitioning"}
        and each.terms[0][0] in {("x", number, place) for place in range(6)}
    ]
    orders = [decorated(candidate) for candidate in made[number].candidates]
    assert ("probe order", [(1.0, order) for order in orders]) in found
    assert ("subqueries", [(-1.0, "R ST[b]"), (1.0, "S T[c]"), (1.0, "S T[d]")]) in found
    assert ("subqueries", [(-1.0, "R ST[b]"), (1.0, "T S[b]"), (1.0, "T S[c]")]) in found
    assert ("cost", [(-175.0, "R S[b] T[c]"), (100.0, "R S[b]"), (75.0, "R S[b] T[c]")]) in found
    assert ("cost", [(-250.0, "R S[b] T[d]"), (100.0, "R S[b]"), (150.0, "R S[b] T[d]")]) in found
    assert len(found) == 1 + 2 * 2 + 6


def _prefix(variable: object) -> Candidate:
    assert isinstance(variable, tuple)
    return Candidate(order=variable[1][0], steps=(), costs=())


def test_section_v_2_costs_475_each_950_one_by_one_and_800_shared() -> None:
    """Without intermediate results, as the section says."""
    first = example_query("q1", "r.a = s.a", "s.b = t.b")
    second = example_query("q2", "s.b = t.b", "t.c = u.c")
    options = example_options("ilp")

    def flat(*queries: Query) -> float:
        made = groups(queries, example_statistics(options), options)
        kept = [
            type(group)(
                fills=None,
                start=group.start,
                candidates=tuple(candidate for candidate in group.candidates if not candidate.used),
            )
            for group in made
            if group.fills is None
        ]
        return optimum(kept)

    assert flat(first) == pytest.approx(475)
    assert flat(second) == pytest.approx(475)
    assert flat(first, second) == pytest.approx(800)
