"""Bad inputs by families, and what the command line makes of each: see ../hostile_inputs.py."""
