"""What machines and jobs draw, and policies that save power."""
