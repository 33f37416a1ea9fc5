"""The version of this package. It has a file of its own so that no module needs to import the package's root."""

__version__ = "0.1.0"
