"""The Trio server: sockets, listeners, and the clusters of a process."""
