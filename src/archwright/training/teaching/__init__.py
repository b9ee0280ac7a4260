"""What a teacher says about training rows: its answers, kept on disk, and further rows for it to answer."""
