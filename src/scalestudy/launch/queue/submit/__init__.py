"""Which jobs a sweep becomes, and giving them to the queue."""
