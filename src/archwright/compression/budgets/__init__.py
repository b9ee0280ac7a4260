"""What a run and its networks may cost: time, sizes, latency, the runtime of an export."""
