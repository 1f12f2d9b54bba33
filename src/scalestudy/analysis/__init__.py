"""From finished runs to one table, speed-up, quality and advice. Pure, but for `read`."""
