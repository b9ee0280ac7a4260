"""Tasks: labelled texts, questions and plain text from files, GLUE, SQuAD or the hub, in three splits."""
