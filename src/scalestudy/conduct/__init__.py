"""A study from its file to its report. Prints nothing; tells what happens to whoever listens."""
