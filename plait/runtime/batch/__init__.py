"""The streaming query, and a micro-batch from its call to the committed manifest.

In: an epoch, the last manifest, the rows of one batch. Out: the next manifest, results on their way, one event. What
must hold: the phases run in the order that `microbatch` gives, and a batch has happened when its manifest is there.
"""
