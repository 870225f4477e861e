"""A stand-in for Spark: the part of its DataFrame API that Plait's runtime uses, on one thread, over Arrow and DuckDB.

With it the tests drive the whole engine (catalog, planning, rewriting of buckets, batches, manifests, recovery) a
hundred times faster than with Spark. DuckDB evaluates expressions, tasks run in this process, and files are read and
offsets remembered as Plait wants it of named sources: by name, for ever, also while a source is not read. (Spark
forgets a source that was not read in two batches; `tests/spark/test_life_cycles_spark.py` holds that.)
Spark's own errors, hashes and shuffles are not here; `tests/spark` runs the same lives with the real one.
"""
