"""Sources in Spark: opened, checked against what is declared, read.

In: a source as the front end describes it. Out: a DataFrame, or stores filled from it. What must hold: a source that
cannot be read is refused by name, with what to do, before the run begins.
"""
