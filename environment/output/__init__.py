"""What hpcrowd writes: whole or not at all, and never over an input."""
