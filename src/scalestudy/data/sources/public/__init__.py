"""Public data sets by name: fetched once, put in place whole, then read like any folder or .npz file."""
