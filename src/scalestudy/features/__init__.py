"""What can be removed without the core noticing: one folder each, imported by the command line and registries."""
