"""Arguments that the benchmarks share."""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

DIRECTORY = Path(tempfile.gettempdir()) / "plait-bench"


def parser(name: str, description: str) -> argparse.ArgumentParser:
    """Return a parser with what every benchmark takes."""
    made = argparse.ArgumentParser(
        prog=f"python -m benchmarks {name}",
        description=description,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    made.add_argument("--json", type=Path, metavar="FILE", help="write the whole report there")
    made.add_argument(
        "--dir",
        type=Path,
        default=DIRECTORY,
        metavar="DIR",
        help="where data is kept between runs, and checkpoints during one",
    )
    made.add_argument("--cores", type=positive, default=min(2, os.cpu_count() or 1), help="cores each system may use")
    made.add_argument("--seed", type=int, default=7, help="seed of the data")
    made.add_argument(
        "--conf",
        action="append",
        default=[],
        type=setting,
        metavar="KEY=VALUE",
        help="a setting: spark.* for all systems, plait.* for Plait",
    )
    return made


def positive(text: str) -> int:
    """Return a number of at least 1; for argparse."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a number of at least 1, found {text}")
    return value


def numbers(text: str) -> tuple[int, ...]:
    """Return a comma-separated list of numbers of at least 1; for argparse."""
    return tuple(positive(part) for part in text.split(","))


def setting(text: str) -> tuple[str, str]:
    """Return a setting given as KEY=VALUE; for argparse."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, found '{text}'")
    return name, value
