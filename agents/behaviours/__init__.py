"""Users, and the parts that their behaviours are made of."""
