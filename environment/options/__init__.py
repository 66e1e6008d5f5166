"""Options of classes and functions, also of your own, and objects that are made with them."""
