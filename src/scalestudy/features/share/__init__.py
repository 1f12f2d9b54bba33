"""`report --share`: one file with a study's results and no names, to give to others."""
