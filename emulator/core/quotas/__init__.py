"""Client quotas: rates over time, and the quota of a client. Arithmetic only: time is an argument."""
