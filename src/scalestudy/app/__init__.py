"""A study from its file to its report: checked, prepared, started, followed, reported. Prints nothing."""
