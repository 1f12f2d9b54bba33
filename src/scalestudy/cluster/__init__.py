"""Who am I among the workers: from launchers' environments to one placement."""
