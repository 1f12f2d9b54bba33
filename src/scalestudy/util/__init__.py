"""What any package may use: errors, files, locks, registries, units, text."""
