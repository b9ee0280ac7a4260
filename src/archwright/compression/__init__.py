"""The pipeline of `compress`: context, fine-tuning, super-network, evaluator, search and result."""
