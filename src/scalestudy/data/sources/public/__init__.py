"""Public data sets by name: downloaded once, then read like any folder or .npz file."""
