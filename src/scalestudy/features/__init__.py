"""Optional features, one folder each. The core does not depend on them; `cli` and registries import them."""
