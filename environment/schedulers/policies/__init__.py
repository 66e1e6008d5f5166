"""Policies besides FCFS and EASY for a pool of processors."""
