"""Published studies, run again."""
