"""Arriving rows along their probe trees, to results and to intermediate stores.

In: the new buckets of a batch, a plan. Out: files of results, buckets of intermediate stores, counts. What must hold: a
tree is traversed after those of lower rank that fill what it probes; local and shuffled edges give the same.
"""
