"""What a user may want to know of a plan beside the plan.

In: queries, statistics, options, a plan. Out: what sharing saves against the baselines, which intermediate stores and
queries cost what, which numbers were assumed and how much rests on them. What must hold: all figures are per second of
event time, and estimated from the same statistics as the plan's own.
"""
