"""Double exponential smoothing of many short series at once: what the next cycles will show (paper 003, section 4.3).

Holt's linear trend, with level l, trend b and a damping φ (1 where the trend goes on as it is):

    l(t) = α·y(t) + (1 − α)·(l(t−1) + φ·b(t−1))
    b(t) = β·(l(t) − l(t−1)) + (1 − β)·φ·b(t−1)
    ŷ(t+h) = l(t) + (φ + φ² + … + φʰ)·b(t)

Level and trend begin as the straight line through the first ten values. α, β and φ are those with the smallest squared
error one step ahead, by series, of a grid that is refined around the best. That is what statsmodels' `Holt` does with
``initialization_method="heuristic"``; it takes a second and a half to load, and one series at a time. Unlike there, α
is never less than `LEAST_ALPHA`: what has followed one line for a while may leave it.

A gap (NaN) is a cycle in which nothing was seen: it is passed over, as if time had stood still, because a trend that
runs on through a long silence ends anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Method: TypeAlias = Literal["linear", "damped", "last"]

FEWEST: Final = 4
"""With fewer values the last one is the forecast: any three have a trend, and it mostly is noise."""

LEAST_ALPHA: Final = 0.02

_FIRST = 10
"""So many values the first line is drawn through."""

_JUMP = 4.0
"""So many times the usual error one step ahead is a jump: what was before it says nothing of what comes."""

_ALPHAS = (0.05, 0.15, 0.3, 0.5, 0.7, 0.9, 1.0)
_BETAS = (0.0, 0.05, 0.15, 0.4, 0.8)
_PHIS = (0.8, 0.9, 0.98)
_REFINEMENTS = (0.1, 0.05, 0.02, 0.007)
"""Steps in α, β and φ around the best so far, once the best of the grid is known."""
_LOWEST_PHI, _HIGHEST_PHI = 0.8, 0.995


@dataclass(frozen=True, slots=True, kw_only=True)
class Smoothing:
    """α, β and φ, each broadcast against the series."""

    alpha: Floats
    beta: Floats
    phi: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Smoothed:
    """Where series have come to: level and trend after the last value, and the mean squared error one step ahead.
    `jumps`: whether the last value is farther off than any noise before it.
    """

    level: Floats
    trend: Floats
    phi: Floats
    error: Floats
    jumps: npt.NDArray[np.bool_]

    def ahead(self, steps: int) -> Floats:
        """Return the forecast `steps` cycles ahead of the last value."""
        weight = sum(self.phi**step for step in range(1, steps + 1))
        result: Floats = self.level + weight * self.trend
        return result


def forecast_series(
    series: Floats, method: Method, *, steps: int = 1, low: float = 0.0, high: float = np.inf
) -> Floats:
    """Return the forecast of each row of `series` (float64[n, cycles], NaN for gaps), `steps` cycles ahead.

    It stays within [low, high], and as near to the last value as the values have been to each other: a last value that
    jumps is no reason to expect another jump of that size. NaN where a series has no value at all.
    """
    last = last_of(series)
    if method == "last" or not series.size:
        return np.clip(last, low, high)
    is_long = (~np.isnan(series)).sum(axis=1) >= FEWEST
    if not is_long.any():
        return np.clip(last, low, high)
    forecast = last.copy()
    long = series[is_long]
    reach = np.nanmax(long, axis=1) - np.nanmin(long, axis=1)
    smooth = fitted(long, method)
    ahead = np.where(smooth.jumps, last[is_long], smooth.ahead(steps))
    forecast[is_long] = np.clip(ahead, last[is_long] - reach, last[is_long] + reach)
    return np.clip(forecast, low, high)


def fitted(series: Floats, method: Literal["linear", "damped"]) -> Smoothed:
    """Return the series smoothed with the α, β and φ that would have forecast each of them best.

    Of equal errors the first of the grid counts, which follows the values least.
    """
    phis = np.array(_PHIS if method == "damped" else (1.0,))
    grid = [each.reshape(-1, 1) for each in np.meshgrid(_ALPHAS, _BETAS, phis, indexing="ij")]
    best = _best(series, Smoothing(alpha=grid[0], beta=grid[1], phi=grid[2]))
    for step in _REFINEMENTS:
        around = np.array((0.0, -step, step))
        moves = np.meshgrid(around, around, around if method == "damped" else around[:1], indexing="ij")
        alpha, beta, phi = (each.reshape(-1, 1) for each in moves)
        damping = np.clip(best.phi + phi, _LOWEST_PHI, _HIGHEST_PHI) if method == "damped" else best.phi + phi
        best = _best(
            series,
            Smoothing(
                alpha=np.clip(best.alpha + alpha, LEAST_ALPHA, 1.0),
                beta=np.clip(best.beta + beta, 0.0, 1.0),
                phi=damping,
            ),
        )
    return smoothed(series, best)


def _best(series: Floats, tried: Smoothing) -> Smoothing:
    """Return by series the best of the parameters along the first axis."""
    errors = smoothed(series, tried).error
    chosen = np.argmin(errors, axis=0), np.arange(errors.shape[1])
    shape = errors.shape
    return Smoothing(
        alpha=np.broadcast_to(tried.alpha, shape)[chosen],
        beta=np.broadcast_to(tried.beta, shape)[chosen],
        phi=np.broadcast_to(tried.phi, shape)[chosen],
    )


def smoothed(series: Floats, using: Smoothing) -> Smoothed:
    """Return level and trend after the last value (any shape that parameters and ``series[:, 0]`` broadcast to)."""
    intercept, slope = _first_line(series)
    shape = np.broadcast_shapes(using.alpha.shape, intercept.shape)
    level, trend = np.broadcast_to(intercept, shape), np.broadcast_to(slope, shape)
    squares, latest = np.zeros(shape), np.zeros(shape)
    for value in series.T:
        seen = ~np.isnan(value)
        expected = level + using.phi * trend
        error = np.where(seen, value - expected, 0.0)
        risen = expected + using.alpha * error
        turned = using.beta * (risen - level) + (1.0 - using.beta) * using.phi * trend
        level, trend = np.where(seen, risen, level), np.where(seen, turned, trend)
        squares, latest = squares + error**2, np.where(seen, error**2, latest)
    count = np.maximum((~np.isnan(series)).sum(axis=1), 1)
    usual = (squares - latest) / np.maximum(count - 1, 1)
    return Smoothed(
        level=level,
        trend=trend,
        phi=np.broadcast_to(using.phi, shape),
        error=squares / count,
        jumps=latest > _JUMP**2 * usual,
    )


def _first_line(series: Floats) -> tuple[Floats, Floats]:
    """Return intercept and slope of the least-squares line through the first values of each series, the n-th at n."""
    place = np.cumsum(~np.isnan(series), axis=1).astype(np.float64)
    place[np.isnan(series) | (place > _FIRST)] = np.nan
    count = np.maximum((~np.isnan(place)).sum(axis=1), 1)
    values = np.where(np.isnan(place), 0.0, series)
    mean_place, mean = np.nansum(place, axis=1) / count, values.sum(axis=1) / count
    off = np.where(np.isnan(place), 0.0, place - mean_place[:, None])
    spread = (off**2).sum(axis=1)
    slope = (off * values).sum(axis=1) / np.where(spread > 0, spread, 1.0)
    return mean - slope * mean_place, slope


def last_of(series: Floats) -> Floats:
    """Return the last value of each series, NaN where there is none."""
    latest: Floats = np.full(len(series), np.nan)
    for value in series.T:
        latest = np.where(np.isnan(value), latest, value)
    return latest


__all__ = [
    "FEWEST",
    "LEAST_ALPHA",
    "Floats",
    "Method",
    "Smoothed",
    "Smoothing",
    "fitted",
    "forecast_series",
    "last_of",
    "smoothed",
]
