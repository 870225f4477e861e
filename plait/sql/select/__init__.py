"""One SELECT: from its text to a `Query`, or to everything that is wrong with it.

In: the text, the sources it may read, windows. Out: a `Query` with names resolved and conditions sorted, and the text
that Spark is asked to confirm. What must hold: what Plait does not run is refused by name, with a line, a column and
advice.
"""
