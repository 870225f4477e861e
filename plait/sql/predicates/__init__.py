"""Join predicates: conditions sorted into selections, equalities and the rest, and the rest made computable.

In: bound conjuncts, and the types of their operands once these are known. Out: the predicates of `plait.query.model`,
with ranges an index can look up, and DuckDB's text for what no index decides. What must hold: a predicate means what
Spark makes of the user's text, NULL and NaN included; what is not known to be the same in DuckDB is refused.
"""
