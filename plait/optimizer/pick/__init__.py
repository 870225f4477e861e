"""Probe orders of least work (paper 003, dpPick): what a look-up costs counts beside what it finds.

In: queries, statistics, options. Out: probe orders, and those that fill intermediate stores where these pay. What must
hold: for one starting relation no order is cheaper, given the steps that others take anyway; all together never cost
more than without intermediate stores; a number depends on content alone, so that ties stay ties.

`step_costs` says what a step costs and how many tuples leave it, `best_order` finds the cheapest order, `goals` those
of several that share steps, `stores` which intermediate stores pay, `plan_cost` what a finished plan costs.
"""
