"""What larger runs of a study are expected to take, from runs of one worker and from the network."""
