"""What this machine has: devices, cores, memory, and the links between them."""
