"""Plait against its peers on the same data in the same run, and its parts by themselves. Plait never imports this."""
