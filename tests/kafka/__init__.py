"""Streams of a real Kafka broker."""
