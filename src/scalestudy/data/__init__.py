"""What is read: sources, preparing, splitting, the order of samples and the loader."""
