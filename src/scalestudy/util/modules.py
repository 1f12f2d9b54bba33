"""Names of the modules that are started as processes.

With them, a package may start a module of a higher package without importing it. In a folder that the user
chooses, `python -P` is used, so that no file there is taken for a module.
"""

WORKER = "scalestudy.worker"
"""A process of a run or of a check: the command that every launcher starts."""
HOST_AGENT = "scalestudy.launch.host_agent"
"""Starts and ends the workers of a run on its host, as long as its standard input is open."""
JOB_WRAPPER = "scalestudy.launch.queue.wrapper"
"""Supervises the workers of a job, on its first node."""
INFERENCE = "scalestudy.features.model.model_worker"
"""A process that uses a trained model."""
TASK_FILE = "scalestudy.tasks.child"
"""Runs the code of a user's file: to store the samples of its `read(data)`, or to build its model."""
DESCRIBE_ENVIRONMENT = "scalestudy.hardware.installed"
