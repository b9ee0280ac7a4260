"""Plain text: tokenizers, rows of tokens to pre-train on, masking, and small batches to probe networks with."""
