"""A script file: its text, its settings, and everything wrong with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from plait.errors import OptionError, PlacedError, PlaitError
from plait.query.origin import formats_of
from plait.sinks.kinds import connectors_of
from plait.sql import Script, check_script, load_script, parse_script
from plait.sql.script.set_options import checked_option
from plait.sql.statements import CreateQuery, CreateStream, CreateTable, SetOption

if TYPE_CHECKING:
    from plait.sql.script.sources import SchemaOf


class ScriptError(PlaitError):
    """A script has mistakes: all of them, in the order of the text."""

    def __init__(self, mistakes: tuple[PlacedError, ...]) -> None:
        self.mistakes = mistakes
        super().__init__("\n".join(str(mistake) for mistake in mistakes))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptText:
    """A script as read from `file`. Relative paths in it are relative to the file's directory."""

    file: Path
    text: str

    def mistakes(self, checkpoint: str | None = None) -> tuple[PlacedError, ...]:
        """Return every mistake that can be found without Spark; `checkpoint`: where it will be run, if known."""
        return check_script(self.text, file=str(self.file), base=str(self.file.parent), checkpoint=checkpoint)

    def settings(self) -> dict[str, str]:
        """Return what the script SETs; a later SET of the same name wins."""
        statements = parse_script(self.text, file=str(self.file), base=str(self.file.parent))
        return dict(
            checked_option(statement.name, statement.value)
            for statement in statements
            if isinstance(statement, SetOption)
        )

    def formats(self) -> tuple[str, ...]:
        """Return the formats that the script names, each once: of what is read, of values in it, and of sinks."""
        named: list[str] = []
        for statement in parse_script(self.text, file=str(self.file), base=str(self.file.parent)):
            if isinstance(statement, CreateQuery):
                named += connectors_of(statement.sink)
            elif isinstance(statement, CreateStream | CreateTable):
                source = statement.stream if isinstance(statement, CreateStream) else statement.table
                named += [] if source.connector is None else formats_of(source.connector)
        return tuple(dict.fromkeys(named))

    def load(self, schema_of: SchemaOf | None = None) -> Script:
        """Return what the script says. `schema_of` is asked for undeclared columns; without it, local files."""
        return load_script(self.text, file=str(self.file), base=str(self.file.parent), schema_of=schema_of)


def read_script_file(file: Path) -> ScriptText:
    """Read a script file. Raises OptionError if there is none, or if it is not text."""
    try:
        return ScriptText(file=file, text=file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise OptionError(f"there is no file '{file}'; name a Plait SQL script") from error
    except UnicodeDecodeError as error:
        raise OptionError(f"'{file}' is not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    except OSError as error:
        raise OptionError(f"'{file}' cannot be read: {error.strerror}; name a Plait SQL script") from error


def read_sound_script(file: Path) -> ScriptText:
    """Read a script file; raise ScriptError with all of its mistakes, if it has any."""
    script = read_script_file(file)
    mistakes = script.mistakes()
    if mistakes:
        raise ScriptError(mistakes)
    return script
