"""What is known about engines, strategies and launchers without importing them: registries."""
