"""`plait run --watch`: whenever the script is saved, the queries of the run become those of the script.

What was wrong when it was saved changes nothing: it is told, and the run goes on as before until it is saved again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from plait.cli.script import ScriptText, read_script_file
from plait.cli.script_difference import readers_first, relations_with_windows
from plait.errors import OptionError, PlaitError
from plait.query.model import Query
from plait.sinks import Sink
from plait.spelling import plural

if TYPE_CHECKING:
    from plait.runtime.engine import Engine
    from plait.sql import Script


@dataclass(slots=True)
class Watch:
    """Looks at a script's file. `applied`: what the run answers of it; `say` is told what becomes of each change."""

    engine: Engine
    script: ScriptText
    applied: Script
    load: Callable[[ScriptText, Engine], Script]
    say: Callable[[str], None]
    _stamp: tuple[int, int] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._stamp = self._stamped()

    def look(self) -> None:
        """Apply the script if it has been saved since."""
        stamp = self._stamped()
        if stamp is None or stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._apply()
        except (PlaitError, OSError) as problem:
            self.say(f"{self.script.file} was saved and is not applied, so the run goes on as before: {problem}")

    def _stamped(self) -> tuple[int, int] | None:
        """Return what tells whether the file has been saved; None while an editor has it away."""
        try:
            status = self.script.file.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size

    def _apply(self) -> None:
        text = read_script_file(self.script.file)
        if text.text == self.script.text:
            return
        for mistake in text.mistakes():
            raise mistake
        wanted = self.load(text, self.engine)
        self._refuse_other_sources(wanted)
        before = {query.name: query for query in self.applied.queries}
        after = {query.name: query for query in wanted.queries}
        changed = [query for name, query in after.items() if before.get(name) != query]
        gone = [query for name, query in before.items() if name not in after and name in self.engine.queries()]
        dropped = readers_first({each.name: {relation.source for relation in each.relations} for each in gone})
        self._try(changed, dropped)
        for name in dropped:
            self.engine.drop(name)
        asked = [query for query in changed if self._ask(query)]
        self.script, self.applied = text, wanted
        taken = plural(len(asked), "query", "queries")
        self.say(f"{text.file} was saved: {taken} added or replaced, {len(dropped)} dropped")

    def _refuse_other_sources(self, wanted: Script) -> None:
        """Refuse what takes another start. Raises OptionError."""
        known = {source.name: source for source in self.applied.sources}
        for source in wanted.sources:
            if known.get(source.name) != source:
                raise OptionError(f"'{source.name}' is not as the run reads it; start the run again for that")
        if wanted.settings != self.applied.settings:
            raise OptionError("its settings (SET) are others than the run has; start it again for that")

    def _try(self, queries: Iterable[Query], dropped: Iterable[str]) -> None:
        """Have all of them read before anything is changed. Raises SqlError for the first that cannot be, OptionError
        for one that would replace a query whose groups others read.
        """
        rehearsal = self.engine.rehearse(dropped)
        for query in queries:
            rehearsal.read(query.name, query.text, sink=Sink(spec=query.sink), windows=windows_of(query))

    def _ask(self, query: Query) -> bool:
        """Have a query added or replaced; tell whether Spark has taken it, too. One that it refuses stays as it was."""
        is_there = query.name in self.engine.queries()
        ask = self.engine.replace if is_there else self.engine.query
        try:
            ask(query.name, query.text, sink=Sink(spec=query.sink), windows=windows_of(query))
        except PlaitError as problem:
            self.say(f"query {query.name} is refused, all others are applied: {problem}")
            return False
        return True


def windows_of(query: Query) -> dict[str, str | None]:
    """Return the windows of a query's streams as an engine takes them."""
    return {
        each.alias: None if each.window_us is None else f"{each.window_us} microseconds"
        for each in relations_with_windows(query)
    }


__all__ = ["Watch", "windows_of"]
