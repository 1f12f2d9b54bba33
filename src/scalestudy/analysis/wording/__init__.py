"""The sentences of the analysis. The modules beside this package compute values; those in it put them into words."""
