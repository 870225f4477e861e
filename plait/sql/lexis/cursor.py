"""Reading a statement token by token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from plait.errors import PlacedError, SqlError
from plait.sql.lexis.text import Placed, SourceText
from plait.sql.lexis.tokens import Token


class Cursor:
    """A position in the tokens of one statement.

    `problems` collects mistakes that do not stop the reading; everything else raises SqlError at once.
    """

    def __init__(self, source: SourceText, masked: str, tokens: Sequence[Token], end: int) -> None:
        self.source, self.masked = source, masked
        self.problems: list[PlacedError] = []
        self._tokens, self._end, self._position = list(tokens), end, 0

    @property
    def token(self) -> Token | None:
        """The next token, None at the end of the statement."""
        return self.ahead(0)

    @property
    def offset(self) -> int:
        """Where the next token starts; the end of the text if there is none."""
        return self.token.start if self.token else self._end

    def ahead(self, count: int) -> Token | None:
        """Return the token `count` places further on."""
        index = self._position + count
        return self._tokens[index] if index < len(self._tokens) else None

    def rest(self) -> tuple[Token, ...]:
        """Return the tokens not yet read."""
        return tuple(self._tokens[self._position :])

    def advance(self) -> Token:
        """Read one token."""
        token = self.token
        if token is None:
            raise self.error("the statement ends too early")
        self._position += 1
        return token

    def at_word(self, *words: str) -> bool:
        """Tell whether the next token is one of these words."""
        return self.token is not None and self.token.keyword in words

    def at_symbol(self, *symbols: str) -> bool:
        """Tell whether the next token is one of these symbols."""
        return self.token is not None and self.token.is_symbol(*symbols)

    def take_word(self, *words: str) -> bool:
        """Read these words if they come next, all or none."""
        tokens = [self.ahead(index) for index in range(len(words))]
        if all(token is not None and token.keyword == word for token, word in zip(tokens, words, strict=True)):
            self._position += len(words)
            return True
        return False

    def take_symbol(self, symbol: str) -> bool:
        """Read this symbol if it comes next."""
        if self.at_symbol(symbol):
            self._position += 1
            return True
        return False

    def take_angle(self) -> bool:
        """Read one ``>``, out of ``>>`` if need be."""
        token = self.token
        if token is None or token.kind != "symbol" or not token.value.startswith(">"):
            return False
        if len(token.value) > 1:
            self._tokens[self._position] = replace(token, value=token.value[1:], start=token.start + 1)
        else:
            self._position += 1
        return True

    def expect_word(self, word: str, why: str = "") -> Token:
        """Read this word."""
        if not self.at_word(word):
            raise self.expected(word + why)
        return self.advance()

    def expect_symbol(self, symbol: str, why: str = "") -> Token:
        """Read this symbol."""
        if not self.at_symbol(symbol):
            raise self.expected(f"'{symbol}'{why}")
        return self.advance()

    def name(self, what: str) -> Token:
        """Read a name, bare or in backquotes."""
        if self.token is None or self.token.kind not in ("word", "quoted"):
            raise self.expected(what)
        return self.advance()

    def string(self, what: str, *, joined: bool = True) -> tuple[str, Token]:
        """Read a string. Adjacent pieces are one, as in Spark: ``'it''s'`` has a quote in it, ``'a' 'b'`` has not.

        `joined` False: pieces with something between them are strings of their own, as in ``'rate' '1000'``.
        """
        if self.token is None or self.token.kind != "string":
            raise self.expected(what)
        first = last = self.advance()
        value = first.value
        while self.token is not None and self.token.kind == "string":
            if not joined and self.token.start != last.end:
                break
            following = self.advance()
            value += (self.masked[last.end - 1] if following.start == last.end else "") + following.value
            last = following
        return value, first

    def raw(self, tokens: Sequence[Token]) -> str:
        """Return the text from the first to the last of these tokens."""
        return self.masked[tokens[0].start : tokens[-1].end] if tokens else ""

    def found(self) -> str:
        """Name the next token."""
        return f"'{self.raw([self.token])}'" if self.token else "the end of the statement"

    def expected(self, what: str) -> SqlError:
        """Build the error for a token that does not fit."""
        return self.error(f"expected {what}, found {self.found()}")

    def error(self, message: str, at: Token | None = None, kind: type[Placed] = SqlError) -> Placed:  # type: ignore[assignment]
        """Build an error at a token, or at the next one."""
        return self.source.error(message, at.start if at else self.offset, kind)

    def report(self, message: str, at: Token | None = None, kind: type[PlacedError] = SqlError) -> None:
        """Note a mistake and read on."""
        self.problems.append(self.error(message, at, kind))
