"""`report --from`: numbers that were measured elsewhere, read from tables and logs into runs."""
