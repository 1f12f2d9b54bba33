"""Whether a study can run here: software, machine, network and collectives, each with what to do."""
