"""Sub-networks of a super-network: run in place, masked or sliced, measured, ordered, extracted."""
