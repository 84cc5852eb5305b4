"""The group coordinator: groups, offsets, and what every kind of group shares."""
