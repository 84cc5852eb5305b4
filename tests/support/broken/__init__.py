"""Rules that a program breaks one by one, to see that their tests fail: `make broken-rules`."""
