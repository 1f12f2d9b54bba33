"""`report --share`: a study as one file for others, without names."""
