"""Numbers that were measured elsewhere, read into runs: one file a form."""
