"""The SQL front end: from text to queries."""

from plait.sql.binder import bind_query
from plait.sql.check import Script, check_script, load_script
from plait.sql.durations import parse_duration_us
from plait.sql.script import parse_script

__all__ = ["Script", "bind_query", "check_script", "load_script", "parse_duration_us", "parse_script"]
