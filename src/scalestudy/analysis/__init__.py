"""From finished runs to a table, speed-up, quality and advice; `read` takes them from a study's folder."""
