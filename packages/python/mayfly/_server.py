from __future__ import annotations

import atexit
import datetime
import json
import os
import re
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from typing import IO, Any, Dict, Mapping, Optional, Sequence, Set, Union

from ._binary import find_binary

_KEPT = 64 * 1024  # characters of the program's stderr

# A proxy of the environment must not see requests to this machine.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class StartError(RuntimeError):
    """The program did not start. The message ends with its stderr."""


class ClockError(RuntimeError):
    """The server refused to read or move the clock."""


class Clock:
    """The clock of a server. set and advance return when everything due on the way has happened."""

    def __init__(self, url: str) -> None:
        self._url = url

    def state(self) -> Dict[str, Any]:
        """Returns the whole state, as docs/clock.md describes it."""
        return self._request("")

    def now(self) -> datetime.datetime:
        """Returns the present instant of the database, in UTC."""
        epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
        return epoch + datetime.timedelta(milliseconds=self.state()["now_ms"])

    def freeze(self) -> Dict[str, Any]:
        """Stops the clock."""
        return self._request("/freeze", {})

    def rate(self, rate: float) -> Dict[str, Any]:
        """Runs the clock at a multiple of real time: 1 is normal speed, 0 freezes it."""
        return self._request("/rate", {"rate": rate})

    def set(self, to: Union[str, datetime.datetime], limit: Optional[str] = None) -> Dict[str, Any]:
        """Moves the clock forward to RFC 3339 or an aware datetime. limit is the real time to wait at most."""
        return self._request("/set", _with_limit({"to": _instant(to)}, limit))

    def advance(self, by: Union[str, datetime.timedelta], limit: Optional[str] = None) -> Dict[str, Any]:
        """Moves the clock forward by a timedelta, or by a duration such as "1h30m"."""
        if isinstance(by, datetime.timedelta):
            return self._request("/advance", _with_limit({"by_ms": by // datetime.timedelta(milliseconds=1)}, limit))
        return self._request("/advance", _with_limit({"by": by}, limit))

    def _request(self, path: str, body: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
        return _call(f"{self._url}/_mayfly/clock{path}", body)


def _call(url: str, body: Optional[Mapping[str, Any]]) -> Dict[str, Any]:
    data = None if body is None else json.dumps(body).encode()
    try:
        with _opener.open(url, data=data) as answer:
            result: Dict[str, Any] = json.load(answer)
            return result
    except urllib.error.HTTPError as error:
        with error:
            text = error.read().decode()
        try:
            reason = json.loads(text)["error"]
        except (ValueError, KeyError, TypeError):
            reason = text.strip()
        raise ClockError(f"mayfly's clock: {reason} (HTTP {error.code})") from None


class Server:
    """A running mayfly. Leaving its with block stops it."""

    def __init__(self, process: "subprocess.Popen[str]", region: str) -> None:
        self.process = process
        self.region = region
        self.url = ""
        self._owner = os.getpid()
        self._stderr = ""
        self._printed = threading.Event()  # the URL is known, or the program has ended
        self._readers = [
            threading.Thread(target=self._read_stdout, args=(process.stdout,), daemon=True),
            threading.Thread(target=self._read_stderr, args=(process.stderr,), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read_stdout(self, output: IO[str]) -> None:
        for line in output:
            found = re.match(r'(?:listening on |\{"msg":"listening","url":")(http:[^\s"]+)', line)
            if found and not self.url:
                self.url = found.group(1)
                self._printed.set()
        self._printed.set()

    def _read_stderr(self, output: IO[str]) -> None:
        for line in output:
            self._stderr = (self._stderr + line)[-_KEPT:]

    def _wait(self, timeout: float) -> None:
        """Returns when the server is ready."""
        deadline = time.monotonic() + timeout
        self._printed.wait(timeout)
        while time.monotonic() < deadline:
            if not self.url or self.process.poll() is not None:
                raise StartError(f"mayfly did not start: exit code {self.process.wait()}")
            try:
                with _opener.open(f"{self.url}/readyz", timeout=max(0.01, deadline - time.monotonic())):
                    return
            except OSError:  # among them the status 503
                time.sleep(0.02)
        raise StartError(f"mayfly was not ready after {timeout:g} s")

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    @property
    def stderr(self) -> str:
        """The end of the program's log."""
        return self._stderr

    @property
    def clock(self) -> Clock:
        return Clock(self.url)

    @property
    def env(self) -> Dict[str, str]:
        """AWS_ENDPOINT_URL and the other variables that point a program at the server."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_ACCESS_KEY_ID": "any",
            "AWS_SECRET_ACCESS_KEY": "any",
        }

    @property
    def client_config(self) -> Dict[str, str]:
        """Keyword arguments of boto3.client and boto3.resource."""
        return {
            "endpoint_url": self.url,
            "region_name": self.region,
            "aws_access_key_id": "any",
            "aws_secret_access_key": "any",
        }

    def client(self, service: str = "dynamodb", **config: Any) -> Any:
        """Returns a client of boto3, which must be installed."""
        import boto3

        return boto3.client(service, **{**self.client_config, **config})

    def resource(self, service: str = "dynamodb", **config: Any) -> Any:
        """Returns a resource of boto3, which must be installed."""
        import boto3

        return boto3.resource(service, **{**self.client_config, **config})

    def reset(self) -> Dict[str, Any]:
        """Deletes everything, puts the clock back to its start and returns the clock's state."""
        return _call(f"{self.url}/_mayfly/reset", {})

    def stop(self) -> None:
        """Returns when the program is gone."""
        if self._owner != os.getpid():  # a fork of the process that started it
            return
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for reader in self._readers:
            reader.join()
        for output in (self.process.stdout, self.process.stderr):
            if output:
                output.close()
        _forget(self)

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()


def serve(
    *,
    data_dir: Union[str, "os.PathLike[str]", None] = None,
    start: Union[str, datetime.datetime, None] = None,
    frozen: bool = False,
    region: str = "us-east-1",
    args: Sequence[str] = (),
    binary: Optional[str] = None,
    timeout: float = 30,
) -> Server:
    """Starts mayfly on a free port and returns when it is ready.

    data_dir: directory of the data, made if it does not exist. Default: everything stays in memory.
    start: first instant of a new database, an aware datetime or RFC 3339. Default: now.
    frozen: the clock stands still; in a new database, at exactly start.
    region: region of ARNs and of clients.
    args: further flags of mayfly serve.
    binary: path of the program. Default: MAYFLY_BINARY, else mayfly on PATH.
    timeout: seconds until the start fails.
    """
    command = [find_binary(binary), "serve"]
    command += ["--memory"] if data_dir is None else ["--data", os.fspath(data_dir)]
    command += ["--port", "0", "--region", region]
    if start is not None:
        command += ["--start", _instant(start)]
    if frozen:
        command += ["--frozen"]
    env = {name: value for name, value in os.environ.items() if name not in ("MAYFLY_DATA", "MAYFLY_MEMORY", "MAYFLY_SERVE_DATA", "MAYFLY_SERVE_MEMORY")}  # data_dir decides
    process = subprocess.Popen(
        [*command, *args],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
    )
    server = Server(process, region)
    _remember(server)
    try:
        server._wait(timeout)
    except BaseException as error:
        server.stop()
        if isinstance(error, (StartError, ClockError)) and server.stderr:
            raise type(error)(f"{error}\n{server.stderr.rstrip()}") from None
        raise
    return server


def _with_limit(body: Dict[str, Any], limit: Optional[str]) -> Dict[str, Any]:
    return body if limit is None else {**body, "limit": limit}


def _parse(text: str) -> datetime.datetime:
    # Before Python 3.11 fromisoformat reads neither Z nor fractions of any length.
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)", text)
    if found is None:
        raise ValueError(f'invalid time "{text}"; use 2030-01-01T12:00:00Z')
    day, hour, fraction, zone = found.groups()
    return datetime.datetime.fromisoformat(f"{day}T{hour}{'+00:00' if zone in 'Zz' else zone}")


def _instant(when: Union[str, datetime.datetime]) -> str:
    if isinstance(when, datetime.datetime):
        if when.tzinfo is None:
            raise ValueError(f"{when} has no time zone; use datetime(…, tzinfo=timezone.utc)")
        return when.isoformat()
    _parse(when)
    return when


# The servers that run. They stop when the process exits, and on SIGTERM and SIGHUP if nothing else handles these. SIGINT is an exception, after which the process exits.
_running: Set[Server] = set()
_signals = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def _stop_all() -> None:
    for server in list(_running):
        server.stop()


def _on_signal(number: int, frame: object) -> None:
    for server in list(_running):
        if server._owner == os.getpid():
            server.process.terminate()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _remember(server: Server) -> None:
    _running.add(server)
    if threading.current_thread() is threading.main_thread():
        for number in _signals:
            if signal.getsignal(number) == signal.SIG_DFL:
                signal.signal(number, _on_signal)


def _forget(server: Server) -> None:
    _running.discard(server)
    if not _running and threading.current_thread() is threading.main_thread():
        for number in _signals:
            if signal.getsignal(number) == _on_signal:
                signal.signal(number, signal.SIG_DFL)


atexit.register(_stop_all)
