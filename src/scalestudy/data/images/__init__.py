"""Decode, resize and cut image files."""
