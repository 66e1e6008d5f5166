"""Minh 2012, chapter 7: effects of correlation and locality on schedulers."""
