"""How much a batch takes: what waits in the folders of streams, and the options that bound what Spark reads of it.

The decision itself is `plait.adapt.admission`, which knows neither Spark nor files.
"""
