"""The layouts of folders that people bring: one file each, in the table of `table.py`."""
