"""Benchmarks of one part of Plait each: its stores, its optimizer, its theta joins, its join trees."""
