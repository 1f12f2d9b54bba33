"""Slurm: site profiles, job scripts, and the conversation with the queue."""
