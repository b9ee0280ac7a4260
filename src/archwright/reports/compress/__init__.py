"""What `archwright compress` shows: its page, preview, comparison and protocol, and the front in the terminal."""
