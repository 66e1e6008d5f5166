"""Commands that list the available choices."""
