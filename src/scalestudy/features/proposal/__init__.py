"""The page that a panel asks for: its profile, the sentences that a study supports, the request."""
