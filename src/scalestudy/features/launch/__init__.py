"""Run a user's own script on several workers: `scalestudy launch` and `scalestudy.workers()`."""
