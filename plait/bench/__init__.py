"""Benchmarks: Plait against its peers on the same data in the same run."""
