"""Queries in Spark: confirmed by it, with the types of their results, and delivered.

In: a bound query and its sink. Out: how its results travel, and spooled results in the sink. What must hold: results
wait in the form in which they can be delivered even after their query has changed.
"""
