"""Where numbers do not say what they are taken for: one file a finding."""
