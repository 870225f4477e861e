"""What the benchmark of deployment makes of what it has seen."""

from __future__ import annotations

from benchmarks.components.deployment import Course, Figures


def course(*, waits: tuple[float, ...], meanwhile: float) -> Course:
    """Return a course of requests at second 10 that waited for so long, with batches of a second before."""
    seen = Course(begun=10.0, ended=20.0, batches=[(8.0, 1.0), (9.0, 1.0), (12.0, meanwhile)])
    for number, wait in enumerate(waits):
        seen.asked[f"q{number}"] = 10.0
        seen.answered[f"q{number}"] = 10.0 + wait
    return seen


def test_a_course_within_the_limits():
    figures = Figures.of(course(waits=(1.0, 1.5, 2.9), meanwhile=1.25))
    assert (figures.lost, figures.median, figures.before, figures.meanwhile) == (0, 1.5, 1.0, 1.25)
    assert figures.missed() == ()


def test_every_limit_that_is_not_kept_is_named():
    seen = course(waits=(1.6, 1.6, 4.0), meanwhile=1.3)
    seen.asked["lost"] = 11.0
    assert [each.partition(":")[0] for each in Figures.of(seen).missed()] == [
        "requests lost",
        "waited, median",
        "waited, 95th percentile",
        "a batch meanwhile",
    ]


def test_a_query_that_is_dropped_before_it_is_answered_is_not_lost():
    seen = course(waits=(1.0,), meanwhile=1.0)
    seen.asked["gone"] = 11.0
    seen.withdraw("gone")
    seen.withdraw("q0")
    assert seen.lost == frozenset()
    assert seen.withdrawn == {"gone"}


def test_nothing_asked_for_has_no_waits():
    figures = Figures.of(Course())
    assert (figures.median, figures.late, figures.missed()) == (None, None, ())
