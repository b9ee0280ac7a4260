"""Processes of this machine, or nodes of a Ray cluster, that do work."""
