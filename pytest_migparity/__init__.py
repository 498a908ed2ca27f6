"""Was accuracy lost when GPU code moved to another accelerator, and where does the loss first show?"""

__version__ = "0.1.0"
