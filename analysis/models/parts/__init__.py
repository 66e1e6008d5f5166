"""What models are made of: parts in general, and those that several models have."""
