"""What parts add to the settings of runs, and what these put into a run and take out of it."""
