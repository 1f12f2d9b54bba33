"""The study file, the keys that it may have, and its expansion into points."""
