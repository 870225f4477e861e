"""How many rows there are, how many are sent and how many kept.

In: relations, predicates, statistics. Out: numbers of rows, of distinct keys, of probe tuples, of bytes. What must
hold: a number depends on content alone (never on an alias or on who asks), to the last bit, so that ties stay ties;
what no statistics tell comes from `Assumptions` and from nowhere else; what is not known is None, never 0.
"""
