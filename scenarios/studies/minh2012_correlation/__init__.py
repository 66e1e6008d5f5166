"""Minh 2012, chapter 7: what correlation and locality do to schedulers."""
