"""The panels of the page: what each shows of a run at a moment, as data for the browser."""
