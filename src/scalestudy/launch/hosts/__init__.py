"""Several machines without a queue: `launch.on = "hosts"`."""
