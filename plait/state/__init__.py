"""State on disk: buckets, manifests, retention, compaction. Files only, no Spark."""
