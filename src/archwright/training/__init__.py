"""Training: one loop, objectives, recipes, checkpoints and evaluation (GLUE, SQuAD). `schedule` loads no torch."""
