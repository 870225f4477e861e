"""What a run of the suite found: written down, read, drawn, made a page of, and compared with another run."""
