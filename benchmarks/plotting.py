"""Matplotlib, where it is installed."""

from __future__ import annotations

from typing import Any

from plait.errors import OptionError


def require_pyplot() -> Any:
    """Return matplotlib's pyplot, set to draw into files. Raises OptionError if it is not installed."""
    try:
        import matplotlib
    except ImportError as error:
        raise OptionError("a plot needs matplotlib, which is not installed: pip install 'plait[bench]'") from error
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot
