"""The folder of a study and those of its runs: records, checksums, states."""
