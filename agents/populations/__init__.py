"""Populations of users: mixtures, pools, semi-open populations, satisfaction."""
