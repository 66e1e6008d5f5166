"""The energy of a run: what jobs and the idle machine used, its carbon, its cost."""
