"""From a checkpoint and what is registered to a consistent start.

In: manifest, catalog and Spark's offsets as the last run left them, complete or not; the sources and queries there are
now. Out: an epoch, and the manifest that its first batch builds on. What must hold: nothing is committed before that
batch is, and what does not fit is refused before anything is written.
"""
