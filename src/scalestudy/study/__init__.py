"""The study file, its expansion into points, and the folder of a study."""
