"""Starting the workers of a run."""
