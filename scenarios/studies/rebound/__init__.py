"""A faster machine, and the rebound: throughput against speed."""
