"""What analysis says, written for people (terminal, HTML, figures) and for programs (CSV, JSON)."""
