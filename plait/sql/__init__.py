"""The SQL front end: from text to queries. The only importer of sqlglot.

In: the text of a script or a SELECT. Out: frozen `plait.query.model` data, or every mistake with its place. Its rooms,
each importing only from those before it: `lexis` (words and grammar), `expressions` (names, functions, types),
`predicates` (what joins), `select` (one SELECT), `script` (statements, sources, settings).
"""

from plait.sql.lexis.durations import parse_duration_us
from plait.sql.script.check import Script, check_script, load_script
from plait.sql.script.reading import parse_script
from plait.sql.select.binder import bind_query

__all__ = ["Script", "bind_query", "check_script", "load_script", "parse_duration_us", "parse_script"]
