"""Bronze: the lines and files that were read."""
