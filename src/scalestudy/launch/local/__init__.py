"""The launcher that runs workers on this machine."""
