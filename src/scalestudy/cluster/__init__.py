"""The placement of this process among the workers, from the environments that launchers set."""
