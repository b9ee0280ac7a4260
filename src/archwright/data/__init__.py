"""Text to batches: tasks, tokenized rows and padded batches."""
