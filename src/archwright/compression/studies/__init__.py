"""What is studied beside the search of one run: methods side by side, fewer bits, fidelity, spaces before a search."""
