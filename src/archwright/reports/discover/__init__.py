"""What `archwright discover` shows."""
