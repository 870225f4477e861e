"""What a stream is called in Spark's logs."""

from __future__ import annotations

import re

_UNQUALIFIED = re.compile(r"[^0-9A-Za-z_]")


def spark_name(stream: str) -> str:
    """Return the name of a stream in Spark's offset log, which takes letters, digits and underscores only."""
    return _UNQUALIFIED.sub(lambda match: f"_{ord(match.group()):x}_", stream)
