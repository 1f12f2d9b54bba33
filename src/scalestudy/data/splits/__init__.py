"""Training, validation and test samples."""
