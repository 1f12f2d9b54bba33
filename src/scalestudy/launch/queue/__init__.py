"""What all queues share: site profiles, job scripts, submission, and polling of jobs."""
