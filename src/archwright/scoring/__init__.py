"""Training-free scores of many architectures: requests, a scorer with a cache, rankings on a benchmark."""
