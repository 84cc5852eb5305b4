"""Share groups: members that fetch and acknowledge, admins, and the share coordinator, with unusual values.

A sequence has one connection, so that its share sessions last.
"""
