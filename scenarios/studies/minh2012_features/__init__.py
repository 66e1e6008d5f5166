"""Minh 2012, chapter 3: features of workloads."""
