"""Where streams and tables come from: what is known of each format, without Spark.

Spark reads them all the same way, so a format is data: one line of `plait.sources.formats.FORMATS`. **To add one**, add
its line: whether it reads files (and so needs a path), which columns it has, and who tells them; in
`plait.sources.options` the options its reader knows and what they accept, in `plait.sources.combinations` those it
cannot do without. A format that has no line is a connector Plait knows nothing of; Spark judges it.
"""

from plait.sources.column_rules import column_problem, declared_problem
from plait.sources.formats import FORMATS, SourceFormat, columns_of_format, format_of, format_problem
from plait.sources.log_names import spark_name
from plait.sources.options import reader_option_problems

__all__ = [
    "FORMATS",
    "SourceFormat",
    "column_problem",
    "columns_of_format",
    "declared_problem",
    "format_of",
    "format_problem",
    "reader_option_problems",
    "spark_name",
]
