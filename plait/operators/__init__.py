"""The work of a micro-batch as functions over Arrow data: ingest, probe, results, next manifest.

Nothing here knows Spark. The runtime drives these functions from Spark tasks, tests drive them directly, so both run
the same code.
"""
