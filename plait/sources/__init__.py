"""Where streams and tables come from: what is known of each format, without Spark.

Spark reads them all the same way, so a format is data: one line of `plait.sources.formats.FORMATS`. **To add one**, add
its line: whether it reads files (and so needs a path), which columns it has, and who tells them; in
`plait.sources.options` the options its reader knows. A format that has no
line is a connector Plait knows nothing of; Spark judges it.
"""

from plait.sources.column_rules import column_problem
from plait.sources.formats import FORMATS, SourceFormat, format_of, format_problem
from plait.sources.log_names import spark_name
from plait.sources.options import clashing_option, reader_option_problem

__all__ = [
    "FORMATS",
    "SourceFormat",
    "clashing_option",
    "column_problem",
    "format_of",
    "format_problem",
    "reader_option_problem",
    "spark_name",
]
