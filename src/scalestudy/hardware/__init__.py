"""The hardware and the software of this machine: devices, cores, memory, counters and packages."""
