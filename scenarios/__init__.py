"""What to run: replays, studies, the command line."""
