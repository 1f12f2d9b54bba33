"""Check whether a study can run here: software, machine, network and collectives, with remedies."""
