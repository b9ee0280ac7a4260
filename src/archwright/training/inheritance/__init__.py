"""First weights of a student from its teacher."""
