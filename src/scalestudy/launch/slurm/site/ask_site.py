"""What Slurm tells of the site that this machine belongs to, as far as it answers."""

import getpass
import os

from scalestudy.errors import ScalestudyError
from scalestudy.launch.slurm.queue.ask_jobs import cluster_name
from scalestudy.launch.slurm.queue.client import SlurmAbsent, SlurmRefused, SlurmSilent, ask
from scalestudy.launch.slurm.site.partitions import SINFO_FORMAT, parse_sinfo
from scalestudy.launch.slurm.site.template import Proposal, propose


def ask_site() -> tuple[Proposal, str, ScalestudyError | None]:
    """A proposal of a profile, the name of the cluster ("" if unknown), and why Slurm did not tell more."""
    try:
        nodes = parse_sinfo(ask("sinfo", "-h", "-o", SINFO_FORMAT))
        name = cluster_name()
    except (SlurmAbsent, SlurmRefused, SlurmSilent) as error:
        return propose([], [], os.environ), "", error
    return propose(nodes, accounts(), os.environ), name, None


def accounts() -> list[str]:
    """Accounts that the user may charge; empty where there is no accounting, or it does not answer."""
    try:
        text = ask("sacctmgr", "-n", "-P", "show", "assoc", f"user={getpass.getuser()}", "format=Account")
    except (SlurmAbsent, SlurmRefused, SlurmSilent):
        return []
    return [line.strip() for line in text.splitlines() if line.strip()]
