"""Forecasts are those of statsmodels, for many series at once, and stay sane where there is little to go by."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from statsmodels.tsa.holtwinters import Holt

from plait.adapt.smoothing import FEWEST, Floats, Smoothing, fitted, forecast_series, smoothed

CYCLES = 60


def drawn(seed: int, count: int = 12, cycles: int = CYCLES) -> Floats:
    """Return series of many kinds: level, ramp, step, bend, walk, all with some noise."""
    random = np.random.default_rng(seed)
    time = np.arange(cycles)
    found = []
    for number in range(count):
        shape = (
            np.zeros(cycles),
            time * random.normal(),
            np.where(time > cycles * random.random(), 20.0, 0.0),
            10.0 * np.sqrt(time),
            np.cumsum(random.normal(size=cycles)),
        )[number % 5]
        found.append(50.0 + shape + random.normal(scale=random.choice((0.01, 1.0, 5.0)), size=cycles))
    return np.array(found)


def of_statsmodels(series: Floats, *, damped: bool, **parameters: float):  # type: ignore[no-untyped-def]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its optimizer complains of series that are flat
        model = Holt(series, damped_trend=damped, initialization_method="heuristic")
        return model.fit(optimized=not parameters, **parameters)


@pytest.mark.parametrize("damped", [False, True])
def test_level_and_trend_are_those_of_statsmodels_for_the_same_parameters(damped: bool) -> None:
    random = np.random.default_rng(7)
    series = drawn(1)
    alpha, beta = random.uniform(0.05, 1.0, len(series)), random.uniform(0.0, 1.0, len(series))
    phi = random.uniform(0.8, 0.99, len(series)) if damped else np.ones(len(series))
    ours = smoothed(series, Smoothing(alpha=alpha, beta=beta, phi=phi))
    for number, values in enumerate(series):
        given = {"smoothing_level": alpha[number], "smoothing_trend": beta[number]}
        theirs = of_statsmodels(values, damped=damped, **given, **({"damping_trend": phi[number]} if damped else {}))
        for steps in (1, 2, 10):
            assert ours.ahead(steps)[number] == pytest.approx(theirs.forecast(steps)[-1], rel=1e-9)
        assert ours.error[number] == pytest.approx(theirs.sse / CYCLES, rel=1e-9)


@pytest.mark.parametrize("method", ["linear", "damped"])
def test_what_is_chosen_fits_as_well_as_what_statsmodels_chooses(method: str) -> None:
    series = drawn(2, count=6)
    ours = fitted(series, method)  # type: ignore[arg-type]
    for number, values in enumerate(series):
        theirs = of_statsmodels(values, damped=method == "damped").sse / CYCLES
        assert ours.error[number] <= theirs * 1.07 + 1e-6


def test_series_do_not_influence_each_other() -> None:
    series = drawn(3)
    together = forecast_series(series, "damped")
    assert together == pytest.approx([forecast_series(each[None, :], "damped")[0] for each in series])


def test_a_trend_goes_on_and_a_damped_one_dies_down() -> None:
    ramp = np.arange(CYCLES, dtype=np.float64)[None, :] + 100.0
    assert forecast_series(ramp, "linear", steps=5) == pytest.approx([100.0 + CYCLES + 4], rel=1e-6)
    near, far = (float(forecast_series(ramp, "damped", steps=steps)[0]) for steps in (1, 50))
    assert 100.0 + CYCLES - 1 < near < far < 100.0 + CYCLES + 49


@pytest.mark.parametrize("method", ["linear", "damped", "last"])
def test_of_few_values_the_last_is_the_forecast(method: str) -> None:
    for count in range(1, FEWEST):
        values = np.array([[3.0, 30.0, 1.0][:count]])
        assert forecast_series(values, method)[0] == values[0, -1]  # type: ignore[arg-type]
    nothing = forecast_series(np.array([[np.nan] * 5]), method)  # type: ignore[arg-type]
    assert np.isnan(nothing).all()
    assert forecast_series(np.zeros((0, 5)), method).shape == (0,)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["linear", "damped", "last"])
def test_zeros_stay_zero_and_shares_stay_shares(method: str) -> None:
    falling = np.linspace(0.2, 0.0, 20)
    series = np.array([np.zeros(20), np.ones(20), falling, 1.0 - falling])
    found = forecast_series(series, method, steps=30, high=1.0)  # type: ignore[arg-type]
    assert found[:2] == pytest.approx([0.0, 1.0], abs=1e-12)
    assert found[2:] == pytest.approx([0.0, 1.0], abs=1e-3)
    assert ((found >= 0.0) & (found <= 1.0)).all()


@pytest.mark.parametrize("method", ["linear", "damped"])
def test_a_gap_is_passed_over(method: str) -> None:
    values = drawn(4, count=5, cycles=20)
    gaps = np.full((5, 40), np.nan)
    gaps[:, 5:15], gaps[:, 25:35] = values[:, :10], values[:, 10:]
    assert forecast_series(gaps, method) == pytest.approx(forecast_series(values, method))  # type: ignore[arg-type]


def test_a_last_value_that_jumps_is_not_expected_to_jump_again_by_more() -> None:
    series = np.array([[1.0] * 10 + [1000.0]])
    for steps in (1, 5, 50):
        assert 0.0 <= forecast_series(series, "linear", steps=steps)[0] <= 1999.0


def test_a_ramp_is_forecast_better_than_by_its_last_value() -> None:
    random = np.random.default_rng(5)
    time = np.arange(CYCLES + 1)
    series = 100.0 + time * random.uniform(1.0, 5.0, (20, 1)) + random.normal(scale=1.0, size=(20, CYCLES + 1))
    error = {
        method: np.abs(forecast_series(series[:, :-1], method) - series[:, -1]).mean()  # type: ignore[arg-type]
        for method in ("linear", "last")
    }
    assert error["linear"] < 0.7 * error["last"]


@pytest.mark.parametrize("method", ["linear", "damped"])
def test_a_jump_beyond_all_noise_is_believed_at_once_and_noise_is_not(method: str) -> None:
    random = np.random.default_rng(5)
    level = 0.5 + random.normal(scale=0.01, size=(1, 40))
    jumped = np.concatenate((level, [[0.05]]), axis=1)
    assert forecast_series(jumped, method)[0] == pytest.approx(0.05)  # type: ignore[arg-type]
    assert forecast_series(level, method)[0] == pytest.approx(0.5, abs=0.02)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["linear", "damped", "last"])
@pytest.mark.parametrize("value", [0.0, 1e-6, 1.0 - 1e-6, 1.0])
def test_shares_at_their_ends_stay_there_also_after_gaps(method: str, value: float) -> None:
    for length in (1, 2, 3, 20):
        series = np.full((1, length), value)
        series[0, 1::3] = np.nan
        assert forecast_series(series, method, high=1.0)[0] == pytest.approx(value, abs=1e-9)  # type: ignore[arg-type]
