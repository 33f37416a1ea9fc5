"""The settings of everything that trains: inputs, sources, settings and runtime options, each declared once.

A stage inherits its class here and hands itself to the function that trains with it. Nothing heavy is imported here, because
`realmctl --help` reads these files.
"""
