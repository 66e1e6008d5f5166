"""A cluster at one second: who runs, who waits, what is known of the past; and to go on from it."""
