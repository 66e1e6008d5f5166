"""Options of classes and functions, and objects that are made with them."""
