"""The options of every command as frozen dataclasses, presets and their validation. Loads no torch."""
