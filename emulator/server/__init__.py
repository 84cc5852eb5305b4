"""The Trio server: sockets, listeners, the disk, and the clusters of a process."""
