"""The parts of `archwright discover`: statistics, formulas on them, searches, cross-fitting, and what is kept."""
