"""Studies side by side: what differs between them, which differences are real, and whether rankings agree."""
