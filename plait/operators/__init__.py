"""The work of a micro-batch as functions over Arrow data.

Nothing here knows Spark. The runtime drives these functions from Spark tasks, tests drive them directly, so both run
the same code. The rooms, each importing only from those below it:

- `close`: what a batch makes final, and the state after it;
- `traversal`: arriving rows along their probe trees, and where they end;
- `probe`: one step of that, in one partition of a store;
- `ingest`: rows from a source into buckets.
"""
