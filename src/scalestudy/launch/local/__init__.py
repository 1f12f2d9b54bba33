"""Starting the workers of a run on this machine."""
