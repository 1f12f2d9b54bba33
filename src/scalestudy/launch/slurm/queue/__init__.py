"""The conversation with Slurm about jobs."""
