"""One training step per objective: functions that make an `Update` for the loop."""
