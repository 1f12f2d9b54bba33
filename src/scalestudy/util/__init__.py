"""Utilities for all packages: errors, files, locks, registries, units, text."""
