"""Layouts of image folders. `find.py` lists them."""
