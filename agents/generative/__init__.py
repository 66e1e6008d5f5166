"""Users who generate their work."""
