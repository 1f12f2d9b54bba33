"""From finished runs to a table, speed-up, quality and advice. Only `read` touches files."""
