"""Lines on a stream whose reader may go away, as in ``plait run ... | head``."""

from __future__ import annotations

import os
from typing import TextIO


class LineWriter:
    """Writes whole lines. Once the reader is gone, what follows is dropped: the batch at hand must not fail for it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.is_abandoned = False

    def write(self, line: str) -> None:
        """Write one line, in one call, so that lines of two threads cannot mix."""
        if self.is_abandoned:
            return
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except BrokenPipeError:
            self.is_abandoned = True
            # What is still buffered would raise again when the interpreter closes the stream.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
