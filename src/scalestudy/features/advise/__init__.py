"""`scalestudy advise`: which row to ask for, by cost efficiency or by a deadline."""
