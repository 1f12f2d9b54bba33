"""Live view of a running study in the terminal."""
