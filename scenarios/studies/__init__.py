"""Published studies, one folder each."""
