"""Who submits: users, their sessions and graphs, their behaviours."""
