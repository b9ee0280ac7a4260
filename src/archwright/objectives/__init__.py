"""What a sub-network is judged by: error, counted costs, latency."""
