"""`scalestudy diagnose`: why a point's efficiency is below 1, measured by ablations of its steps."""
