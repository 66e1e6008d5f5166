"""Song et al. 2005: groups of users, and the model MUGM."""
