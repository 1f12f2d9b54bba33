"""Present the analysis to people (terminal, HTML, figures) and to programs (CSV, JSON)."""
