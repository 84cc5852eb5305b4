"""One file per API: request and response, every version in one declaration."""
