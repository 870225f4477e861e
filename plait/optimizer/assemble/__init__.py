"""From probe orders to a plan: the part that all strategies share; `build` lists its steps in order.

In: queries, the probe orders that a strategy chose for them, and the covering queries that are joined in their place.
Out: a plan with stores, partitionings, indexes, probe trees and estimates. What must hold: steps that compute the same
thing are one step and stores that keep the same thing are one store, whichever query asked; the plan does not depend on
the order in which queries or probe orders were given, nor on aliases.
"""
