"""Scripts for what-if questions on machines of nodes."""
