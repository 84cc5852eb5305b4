"""Clocks of groups: advance, pause, automatic advance, and scheduled actions."""
