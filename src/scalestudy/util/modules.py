"""Names of Scalestudy's modules that are started as processes: `python -m NAME`.

With these names, a package may start a module of a higher package without importing it. In a folder that the
user chooses, `python -P` is used, so that no file there is taken for a module.
"""

WORKER = "scalestudy.worker"
"""A process of a run or of a check: the command that every launcher starts."""
JOB_WRAPPER = "scalestudy.launch.queue.wrapper"
"""Supervises the workers of a job, on its first node."""
DESCRIBE_TASK = "scalestudy.tasks.file"
BUILD_TASK = "scalestudy.tasks.build"
INFERENCE = "scalestudy.features.predict.worker"
"""A process that uses a trained model."""
READ_DATA = "scalestudy.tasks.read"
"""Runs `read(data)` of a Python file and stores its result."""
DESCRIBE_ENVIRONMENT = "scalestudy.hardware.installed"
TFDS = "scalestudy.data.sources.public.tfds_export"
"""Reads a set of TensorFlow Datasets, which no other module imports."""
NETWORK_NAMESPACE = "scalestudy.hardware.network_namespace"
"""Holds a private network that the workers of a run join."""
