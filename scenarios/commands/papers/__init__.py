"""Commands that reproduce published studies."""
