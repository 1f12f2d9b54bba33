"""Compare studies: what differs between them, and which differences exceed chance."""
