"""The short `--model` for this repository; the plugin owns `--migparity-model` (the same list)."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--model` is taken by the conftest of many projects, so an installed plugin must not claim it."""
    parser.addoption("--model", dest="migparity_model", action="append", default=[], metavar="NAME|PATH",
                     help="short for --migparity-model")
