"""Conduct a study from its file to its report: check, prepare, start, follow, report. Prints nothing."""
