"""Commands on traces: measure, convert, clean, cut, fetch."""
