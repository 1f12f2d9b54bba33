"""Made micrographs: grey images of polished surfaces with one triangular indent each."""
