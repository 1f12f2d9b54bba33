"""Names of Scalestudy's modules that are started as processes: `python -m NAME`.

With these names, a package may start a module of a higher package without importing it. In a folder that the
user chooses, `python -P` is used, so that no file there is taken for a module.
"""

WORKER = "scalestudy.worker"
"""A process of a run or of a check: the command that every launcher starts."""
HOST_AGENT = "scalestudy.launch.hosts.agent"
"""Starts and ends the workers of a run on its host, as long as its standard input is open."""
JOB_WRAPPER = "scalestudy.launch.queue.wrapper"
"""Supervises the workers of a job, on its first node."""
BUILD_TASK = "scalestudy.tasks.build"
INFERENCE = "scalestudy.features.predict.model_worker"
"""A process that uses a trained model."""
READ_DATA = "scalestudy.tasks.read"
"""Runs `read(data)` of a Python file and stores its result."""
DESCRIBE_ENVIRONMENT = "scalestudy.hardware.installed"
EXPORT = "scalestudy.data.sources.arrays"
"""Exports a data set of Keras, which only this process imports."""
NETWORK_NAMESPACE = "scalestudy.hardware.network_namespace"
"""Holds a private network that the workers of a run join."""
