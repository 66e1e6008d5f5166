"""Users and energy: budgets, and saved work that comes back."""
