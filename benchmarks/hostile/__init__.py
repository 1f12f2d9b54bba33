"""Bad inputs by family, and their classification: see ../hostile_inputs.py."""
