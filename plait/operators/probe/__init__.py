"""One step of a probe tree, in one partition of a store.

In: partial results, the buckets of the partition. Out: the pairs that satisfy every predicate of the step, inside all
windows. What must hold: a tuple finds what arrived before it in the order (batch, rank of the stream, occurrence in the
query), and nothing else; so each result is found once, by its last member.
"""
