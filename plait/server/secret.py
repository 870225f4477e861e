"""The token that requests have to show, as long as it is in nobody's hands but those of who may use it."""

from __future__ import annotations

import hmac
import os
import stat
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from plait.errors import OptionError

SHORTEST: Final = 16
_MADE_SO: Final = "make one with: openssl rand -hex 32 > FILE && chmod 600 FILE"


@dataclass(frozen=True, slots=True)
class Secret:
    """A token, of which only the hash is kept, so that neither a message nor a picture of this object shows it."""

    _digest: bytes

    @classmethod
    def of(cls, token: str) -> Secret:
        """Return what knows this token."""
        return cls(sha256(token.encode()).digest())

    def is_shown_by(self, authorization: str) -> bool:
        """Tell whether an ``Authorization`` header shows the token. It takes as long whatever is wrong with it."""
        scheme, _, token = authorization.partition(" ")
        is_equal = hmac.compare_digest(sha256(token.strip().encode("utf-8", "surrogateescape")).digest(), self._digest)
        return is_equal and scheme.lower() == "bearer"

    def is_in(self, text: str) -> bool:
        """Tell whether some piece of a text is the token: of what stands between the signs of a URL."""
        pieces = text.replace("=", " ").replace("&", " ").replace("/", " ").replace("?", " ").split()
        digests = [sha256(piece.encode("utf-8", "surrogateescape")).digest() for piece in pieces]
        return sum(hmac.compare_digest(digest, self._digest) for digest in digests) > 0


def read_token(file: Path) -> str:
    """Return the token in a file. Raises OptionError for a file that others can read, or a token that can be
    guessed.
    """
    try:
        mode = os.stat(file).st_mode
        token = file.read_text(encoding="ascii").strip()
    except OSError as error:
        raise OptionError(f"--token-file '{file}' cannot be read: {error.strerror}; {_MADE_SO}") from error
    except UnicodeDecodeError as error:
        raise OptionError(
            f"--token-file '{file}' holds no token: letters and digits are expected; {_MADE_SO}"
        ) from error
    if mode & (stat.S_IRWXO | stat.S_IWGRP):
        raise OptionError(f"--token-file '{file}' can be read by others on this machine; chmod 600 '{file}'")
    if len(token) < SHORTEST or any(character.isspace() for character in token):
        raise OptionError(
            f"--token-file '{file}' holds no token of at least {SHORTEST} characters without blanks; {_MADE_SO}"
        )
    return token


__all__ = ["SHORTEST", "Secret", "read_token"]
