"""Site profiles: what a cluster wants to be told, and how points are laid out on it."""
