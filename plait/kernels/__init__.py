"""Compiled kernels: arrays in, arrays out. No I/O, no Spark, nothing of ours but errors."""
