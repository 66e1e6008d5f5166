"""Users whose decisions were learned from many logs."""
