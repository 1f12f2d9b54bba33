"""What a package of another author's brings."""
