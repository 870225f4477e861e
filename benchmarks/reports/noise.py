"""Whether figures changed beyond the noise of their runs.

Noise is taken as log-normal, so a change is a difference of mean logarithms. A handful of runs a side say little about
their own spread. So the comparisons of one family (a measure of a system, in all its cases) lend each other theirs: a
comparison's variance is drawn towards the family's, the more so the more alike the family's variances are (Smyth 2004,
"Linear models and empirical Bayes methods", with the prior fitted by its moments). It is never drawn below its own:
else a system noisier than the rest raises false alarms in one file of ten. The t-tests that result are judged together
by Holm's procedure: `ALPHA` bounds the chance that comparisons without any change show one at all.

A change has to be large as well: `LEAST` between the medians, which one odd run cannot move.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

ALPHA = 0.04
"""With which fewer than one file in twenty shows a change that is none, even if some systems are noisier."""

LEAST = 0.05
"""A ratio of medians below 1 + LEAST, and above its inverse, is no change worth telling."""

_FLOOR = 0.005**2
"""The variance of logarithms that is believed at least: figures that happen to agree are not exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A figure's runs on either side. Figures are positive. `family`: whose noise is alike."""

    family: str
    before: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """The median after, by the median before."""
        return median(self.after) / median(self.before)

    @property
    def freedom(self) -> int:
        """Degrees of freedom of its own spread."""
        return len(self.before) + len(self.after) - 2

    @property
    def variance(self) -> float:
        """Variance of its logarithms within the sides; 0 without a degree of freedom."""
        return _squares(self.before, self.after) / self.freedom if self.freedom else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """What a family says of the variance of logarithms in it. `freedom`: how much that is worth; infinite if all its
    members' variances are one. `total`: degrees of freedom of the whole family.
    """

    variance: float
    freedom: float
    total: int

    def moderated(self, pair: Pair) -> tuple[float, float]:
        """Return a pair's variance, drawn up towards the family's, and the degrees of freedom of that."""
        if math.isinf(self.freedom):
            return max(self.variance, pair.variance, _FLOOR), float(self.total)
        freedom = self.freedom + pair.freedom
        drawn = (self.freedom * self.variance + pair.freedom * pair.variance) / freedom
        return max(drawn, pair.variance, _FLOOR), min(freedom, float(self.total))


def judge(pairs: Sequence[Pair]) -> tuple[bool | None, ...]:
    """Return for each pair whether it changed beyond the noise; None if its family's runs show no spread to judge by,
    with one run a side everywhere.
    """
    priors = {family: _prior([pair for pair in pairs if pair.family == family]) for family in _families(pairs)}
    found: list[bool | None] = [None] * len(pairs)
    chances = []
    for place, pair in enumerate(pairs):
        prior = priors[pair.family]
        if prior is not None:
            chances.append((_chance(pair, prior), place))
    chances.sort()
    is_rejecting = True
    for rank, (chance, place) in enumerate(chances):
        is_rejecting = is_rejecting and chance <= ALPHA / (len(chances) - rank)
        found[place] = is_rejecting and _is_large(pairs[place])
    return tuple(found)


def spread(pairs: Sequence[Pair]) -> float | None:
    """Return the standard deviation of one run's logarithm, over these pairs; None if none has two runs a side."""
    total = sum(pair.freedom for pair in pairs)
    return math.sqrt(sum(pair.freedom * pair.variance for pair in pairs) / total) if total else None


def _families(pairs: Sequence[Pair]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(pair.family for pair in pairs))


def _squares(*groups: Sequence[float]) -> float:
    """Return the sum of squares of logarithms about the mean of their group."""
    total = 0.0
    for group in groups:
        logs = [math.log(value) for value in group]
        middle = fmean(logs)
        total += sum((log - middle) ** 2 for log in logs)
    return total


def _prior(pairs: Sequence[Pair]) -> Prior | None:
    """Fit a scaled inverse chi-squared distribution to the variances of a family, by mean and mean square.

    A sample variance with d degrees of freedom has E[s^4] = (1 + 2/d) E[sigma^4]; of the distribution with d0,
    E[sigma^4] / E[sigma^2]^2 - 1 = 2 / (d0 - 4) and E[sigma^2] = s0^2 d0 / (d0 - 2).
    """
    told = [pair for pair in pairs if pair.freedom]
    total = sum(pair.freedom for pair in told)
    if not total:
        return None
    mean = sum(pair.freedom * pair.variance for pair in told) / total
    square = sum(pair.freedom * pair.variance**2 / (1 + 2 / pair.freedom) for pair in told) / total
    excess = square / mean**2 - 1 if mean > 0 else 0.0
    if excess <= 0:
        return Prior(variance=mean, freedom=math.inf, total=total)
    freedom = 4 + 2 / excess
    return Prior(variance=mean * (freedom - 2) / freedom, freedom=freedom, total=total)


def _chance(pair: Pair, prior: Prior) -> float:
    """Return how likely noise alone moves a pair's mean logarithm this far, either way."""
    variance, freedom = prior.moderated(pair)
    moved = fmean(map(math.log, pair.after)) - fmean(map(math.log, pair.before))
    t = moved / math.sqrt(variance * (1 / len(pair.before) + 1 / len(pair.after)))
    return two_sided(t, freedom)


def _is_large(pair: Pair) -> bool:
    return abs(math.log(pair.ratio)) >= math.log1p(LEAST)


def two_sided(t: float, freedom: float) -> float:
    """Return the chance that Student's t is at least this far from 0: I_x(freedom/2, 1/2), x = freedom/(freedom+t^2).

    >>> round(two_sided(2.776445, 4), 6), round(two_sided(1.959964, 1e9), 6)
    (0.05, 0.05)
    """
    x = freedom / (freedom + t * t)
    return _beta(x, freedom / 2, 0.5)


def _beta(x: float, a: float, b: float) -> float:
    """Return the regularized incomplete beta function by its continued fraction (DLMF 8.17.22)."""
    if x in (0.0, 1.0):
        return x
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(1 - x, b, a)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    return front / a * _fraction(x, a, b)


def _fraction(x: float, a: float, b: float) -> float:
    """Return 1/(1 + d1/(1 + d2/(1 + ...))), evaluated from the front (Lentz)."""
    tiny = 1e-300
    c, d = 1.0, 1 / _apart(1 - (a + b) * x / (a + 1), tiny)
    value = d
    for m in range(1, 1000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _apart(1 + term * d, tiny)
            c = _apart(1 + term / c, tiny)
            value *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return value


def _apart(value: float, tiny: float) -> float:
    """Return the value, or something tiny for 0, which is divided by."""
    return value if abs(value) > tiny else tiny
