"""File formats that users write and read: groups files, record files, JSON lines."""
