"""Image files decoded, resized and cut."""
