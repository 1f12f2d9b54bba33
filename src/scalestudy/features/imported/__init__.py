"""`report --from`: read numbers measured elsewhere from tables."""
