"""Version differences beyond the fields of a message: one module for each API that has any.

`normalize_request` converts a request of any version into the shape that the core serves; `render_response` converts
the core's response into the shape of the requested version. `adapters` has them by API key, `releases` has the versions
that each Kafka release accepts.
"""
