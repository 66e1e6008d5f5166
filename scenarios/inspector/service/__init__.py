"""The server of the page: whom it answers, what it understands, and the state of each page."""
