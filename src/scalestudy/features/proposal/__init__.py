"""The page that a review panel requires: its profile, the facts of a study, and the resource request."""
