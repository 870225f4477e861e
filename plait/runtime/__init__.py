"""Spark, and the order of all effects. The only importer of pyspark.

In: what a program or a script registers, and the rows of its sources. Out: results in sinks, one manifest a batch. What
must hold: whatever is interrupted, the next start finds a checkpoint on which it can go on, and no result is lost or
shown twice.

The rooms, each importing only from those below it; `engine` is what programs talk to, `declarations` its half that
registers:

- `batch`: the streaming query and what each of its batches does;
- `losses`: which rows came to nothing, and why; `checkpoint`: from what is on disk to a consistent start;
- `admission`: how much a batch takes;
- `inputs`: sources in Spark; `outputs`: queries in Spark, and their results on the way to a sink;
- `spark`: the session, its JVM, and the tasks in its Python workers.
"""
