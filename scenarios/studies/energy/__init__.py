"""What saves energy, carbon and money on recorded workloads, and what it costs users."""
