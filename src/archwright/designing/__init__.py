"""The parts of `archwright design`: limits, scoring many designs that begin alike, the searches, and what is told."""
