"""What is known of the jobs of a study."""
