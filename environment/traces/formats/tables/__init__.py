"""Tables: with hpcrowd's columns, or your own with a mapping."""
