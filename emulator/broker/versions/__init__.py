"""What depends on the version of a request, made explicit before and after the core: one module for each API.

`ask` turns a request of any version into the one shape the core serves, `answer` renders the core's response for the
version that asked. An API in which versions differ only in fields needs neither.
"""
