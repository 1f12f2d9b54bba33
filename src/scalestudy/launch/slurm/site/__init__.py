"""What Slurm tells of a cluster."""
