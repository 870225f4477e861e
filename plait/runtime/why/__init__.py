"""Why there is no row yet: one row of a query's relation is followed until it is plain what has become of it.

What decides are the rows as their sources have them, read again, and the batch that took each (`evidence`); not what is
stored of them, since most of what explains an absence is no longer there: a row that was late, that a selection left
out, a partner whose window has passed. So it costs reading the sources once more, and changes nothing.
"""
