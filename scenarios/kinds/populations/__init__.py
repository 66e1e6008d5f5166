"""Runs of users who are made up, or drawn from those of a log."""
