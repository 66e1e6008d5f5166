"""Users on a machine of nodes: what makes them react, and what they ask for instead."""
