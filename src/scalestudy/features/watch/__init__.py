"""A study as it runs, live in the terminal."""
