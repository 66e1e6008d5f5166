"""Recorded work: sessions, batches, dependency graphs."""
