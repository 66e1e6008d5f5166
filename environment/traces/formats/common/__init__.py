"""What the trace formats share: files, lines, words, and counts of what is lost."""
