"""Scripts for what-if questions."""
