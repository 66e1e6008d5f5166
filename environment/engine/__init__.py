"""What runs the jobs: the compiled engine, the plain one, and several of them in lock-step."""
