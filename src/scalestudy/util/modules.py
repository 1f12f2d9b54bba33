"""Modules of ours that are started as processes of their own: `python -m NAME`.

A package may start what stands above it without importing it; what it starts so is named here alone.
Where the working folder is the user's choice, by `python -P`: no file that lies there is taken for a module.
"""

WORKER = "scalestudy.worker"
"""One process of a run, or of a check: the one command that every launcher starts."""
JOB_WRAPPER = "scalestudy.launch.queue.wrapper"
"""Watches over the workers of a job, on its first node."""
DESCRIBE_TASK = "scalestudy.tasks.file"
BUILD_TASK = "scalestudy.tasks.build"
INFERENCE = "scalestudy.features.predict.worker"
"""One process that uses a trained model."""
READ_DATA = "scalestudy.tasks.read"
"""Runs `read(data)` of a Python file, and stores what it gives."""
DESCRIBE_ENVIRONMENT = "scalestudy.hardware.installed"
TFDS = "scalestudy.data.sources.public.tfds_export"
"""Reads a set of TensorFlow Datasets, which nothing else imports."""
NETWORK_NAMESPACE = "scalestudy.hardware.network_namespace"
"""Holds a private network, which the workers of a run join."""
