"""What formats of traces have in common: files, lines, words, and what is lost."""
