"""Starts mayfly, a DynamoDB-compatible database with exact TTL, on a free port.

    with mayfly.serve(start="2030-01-01T12:00:00Z", frozen=True) as server:
        table = server.resource("dynamodb").Table("sessions")
        server.clock.advance("1h")
"""

from ._binary import BinaryNotFound, find_binary
from ._server import Clock, ClockError, Server, StartError, serve

__all__ = ["BinaryNotFound", "Clock", "ClockError", "Server", "StartError", "find_binary", "serve"]
