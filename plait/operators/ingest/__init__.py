"""Rows of one source into buckets.

In: Arrow batches with what Spark has evaluated for each row. Out: sorted, indexed buckets and a report that accounts
for every row. What must hold: a row is kept, or counted with the reason why not.
"""
