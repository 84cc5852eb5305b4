"""The options of a pytest that a test starts in a process of its own."""

WITHOUT_PLUGINS = "-p no:schemathesis -p no:hypothesispytest"
"""A value of `PYTEST_ADDOPTS`: the imports of these plugins would take most of the run."""
