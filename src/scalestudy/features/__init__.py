"""What can be removed without the core noticing: one folder each, imported by `cli` and registries alone."""
