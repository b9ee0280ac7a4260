"""One look at a network: named passes, each run once and only when needed."""
