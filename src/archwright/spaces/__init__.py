"""The search spaces, one file each."""
