"""Join trees (paper 002): which joins inside one query have a store of their own, within a storage budget.

In: one query after the other, with sizes of its joins. Out: the inner operators of its tree, and the probe orders they
mean. What must hold: the stores of all queries together fit the budget; an operator's store is probed by something; a
larger budget never makes a query's tree dearer.
"""
