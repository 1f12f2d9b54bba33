"""Job scripts."""
