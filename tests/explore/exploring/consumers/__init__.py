"""Random groups of the consumer protocol, played to a running broker and to the core request by request.

Both get each request at once, and the core takes over the ids that the broker has made, because the hashes of ids
decide ties. So there are no times, and responses are equal without translation. `pair` plays a request to both sides,
`histories` generates requests from the responses, `rounds` plays many groups side by side.
"""
