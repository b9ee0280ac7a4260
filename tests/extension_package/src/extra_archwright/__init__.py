"""A proxy, a space, a model family, a kind of task, a sampler and a benchmark for archwright."""
