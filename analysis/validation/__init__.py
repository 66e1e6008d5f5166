"""Validation of user models against what users did."""
