"""Engines that run the jobs: compiled, plain, and several of them in lock-step."""
