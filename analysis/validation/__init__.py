"""Which user model is nearest to what users did."""
