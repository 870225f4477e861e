"""How a run is shown: one interface, three implementations."""

from __future__ import annotations

import sys

from plait.cli.output.interface import Output, RunInfo
from plait.cli.output.jsonlines import JsonOutput
from plait.cli.output.plain import PlainOutput

__all__ = ["JsonOutput", "Output", "PlainOutput", "RunInfo", "open_output"]


def open_output(*, json: bool) -> Output:
    """Choose by option and by where standard output goes."""
    if json:
        return JsonOutput(sys.stdout)
    if not sys.stdout.isatty():
        return PlainOutput(sys.stdout)
    # Imported here because it takes longer to load than a script to check.
    from rich.console import Console

    from plait.cli.output.live import LiveOutput

    console = Console()
    return LiveOutput(console) if console.is_terminal and not console.is_dumb_terminal else PlainOutput(sys.stdout)
