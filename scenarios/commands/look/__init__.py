"""Commands that show runs, traces and machines."""
