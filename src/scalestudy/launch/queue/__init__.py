"""What all queues share: site profiles, job scripts, submitting, and what is known of jobs."""
