"""Doors to the jobs: the command line. Parse, call a job, show what it answers; no logic."""
