"""Who is there: mixtures, pools, semi-open populations, satisfaction."""
