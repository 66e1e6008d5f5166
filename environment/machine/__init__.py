"""A machine of nodes: what it has, who may use how much of it, and its files."""
