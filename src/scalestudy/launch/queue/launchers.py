"""The launchers that submit to a queue, as the registry finds them."""

from scalestudy.launch.queue.pbs import Pbs
from scalestudy.launch.queue.queue_launcher import QueueLauncher
from scalestudy.launch.queue.slurm import Slurm

SLURM = QueueLauncher(Slurm(), checked=True)
PBS = QueueLauncher(Pbs())
