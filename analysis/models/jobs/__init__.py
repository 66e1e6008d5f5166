"""Models of jobs: run times, processors, users."""
