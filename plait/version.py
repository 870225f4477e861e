"""Which Plait this is: what wrote a checkpoint, and what may read it."""

__version__ = "0.1.0"

__all__ = ["__version__"]
