"""What each request needs, and how its response looks to a client that may not do all of it."""
