"""Plans that follow the data, tried without Spark and measured by counts.

`record` lets the product's own operators take every probe order over the same batches once; `replay` then lets a policy
choose plans cycle by cycle on what its own orders would have shown, and adds up what these took. `living` lets one run
go on with intermediate stores that come and go. `experiments` are
those of papers 000 and 003, and random data that drifts.
"""
