"""The launchers without a queue, as the registry finds them."""

from scalestudy.launch.hosts import HostsLauncher
from scalestudy.launch.local import LocalLauncher

LOCAL = LocalLauncher()
HOSTS = HostsLauncher()
