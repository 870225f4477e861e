"""Data and queries to try Plait on."""
