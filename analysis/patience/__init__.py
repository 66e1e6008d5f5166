"""Patience fitted to logs, and how well it foresees who gives up."""
