"""Speed and memory of archwright itself."""
