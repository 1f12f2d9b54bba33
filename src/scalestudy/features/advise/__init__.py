"""`scalestudy advise`: which row to ask for, by cost efficiency, by a deadline or by energy."""
