"""Spark: sources, the streaming query, tasks, sinks, recovery. The only importer of pyspark."""
