"""Where replicas live: one file, or package, a place."""
