"""The messages: a module for each API, with one declaration of request and response for all versions."""
