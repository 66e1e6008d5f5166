"""Parts of models: the base classes, and parts used by several models."""
