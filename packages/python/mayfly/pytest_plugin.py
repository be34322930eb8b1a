"""Fixtures for pytest, which loads this module by itself."""

from __future__ import annotations

from typing import Any, Dict, Iterator

import pytest

from ._server import Server, serve


@pytest.fixture(scope="session")
def mayfly_options() -> Dict[str, Any]:
    """Arguments of mayfly.serve for the other fixtures. Override it in conftest.py."""
    return {}


@pytest.fixture(scope="session")
def mayfly_server(mayfly_options: Dict[str, Any]) -> Iterator[Server]:
    """One server for all tests."""
    with serve(**mayfly_options) as server:
        yield server


@pytest.fixture
def mayfly_empty(mayfly_server: Server) -> Server:
    """The server of mayfly_server, emptied before each test: faster than a new one."""
    mayfly_server.reset()
    return mayfly_server


@pytest.fixture
def mayfly(mayfly_options: Dict[str, Any]) -> Iterator[Server]:
    """A new, empty server for each test."""
    with serve(**mayfly_options) as server:
        yield server
