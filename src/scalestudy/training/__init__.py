"""The worker: the loop, its compiled step, evaluation."""
