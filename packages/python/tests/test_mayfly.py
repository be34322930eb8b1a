"""Needs MAYFLY_BINARY, the program to test, boto3 and pytest."""

import datetime
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

import mayfly

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = pathlib.Path(mayfly.__file__).resolve().parent.parent
ENV = {**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1"}
UTC = datetime.timezone.utc
INSTALL = "install it as https://github.com/mayflydb/mayfly#install describes, or set MAYFLY_BINARY to its path"


def create_sessions(db):
    db.create_table(
        TableName="sessions", BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}])
    db.update_time_to_live(TableName="sessions", TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires"})


def alive(pid):
    try:
        return " Z " not in pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def gone(pid):
    deadline = time.monotonic() + 10
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(pid)


class Serve(unittest.TestCase):
    def test_item_is_gone_at_its_deadline(self):
        with mayfly.serve(start="2030-01-01T12:00:00Z", frozen=True) as server:
            now = server.clock.now()
            self.assertEqual(now, datetime.datetime(2030, 1, 1, 12, tzinfo=UTC))
            create_sessions(server.client("dynamodb"))
            table = server.resource("dynamodb").Table("sessions")
            table.put_item(Item={"id": "s-1", "expires": int(now.timestamp()) + 3600})
            server.clock.advance("59m")
            self.assertIn("Item", table.get_item(Key={"id": "s-1"}))
            self.assertEqual(server.clock.advance(datetime.timedelta(minutes=1))["expired"], 1)
            self.assertNotIn("Item", table.get_item(Key={"id": "s-1"}))

    def test_reset(self):
        with mayfly.serve(start="2030-01-01T12:00:00Z", frozen=True) as server:
            for _ in range(2):
                create_sessions(server.client("dynamodb"))
                server.clock.advance("1h")
                self.assertEqual(server.reset()["now"], "2030-01-01T12:00:00.000Z")
                self.assertEqual(server.client("dynamodb").list_tables()["TableNames"], [])

    def test_clock(self):
        with mayfly.serve(start=datetime.datetime(2030, 1, 1, tzinfo=UTC)) as server:
            self.assertTrue(server.clock.freeze()["frozen"])
            self.assertEqual(server.clock.set("2030-02-01T00:00:00Z")["now"], "2030-02-01T00:00:00.000Z")
            moved = server.clock.set(datetime.datetime(2030, 3, 1, tzinfo=UTC), limit="1m")
            self.assertEqual(moved["now"], "2030-03-01T00:00:00.000Z")
            self.assertEqual(server.clock.rate(60)["rate"], 60)
            self.assertFalse(server.clock.state()["frozen"])
            with self.assertRaisesRegex(mayfly.ClockError, r"mayfly's clock: set to 2029.* \(HTTP 409\)"):
                server.clock.set("2029-01-01T00:00:00Z")
            with self.assertRaisesRegex(ValueError, "has no time zone"):
                server.clock.set(datetime.datetime(2031, 1, 1))

    def test_two_at_a_time(self):
        with mayfly.serve() as one, mayfly.serve(region="eu-west-1") as two:
            self.assertNotEqual(one.port, two.port)
            self.assertEqual(one.url, f"http://127.0.0.1:{one.port}")
            self.assertEqual(two.env["AWS_ENDPOINT_URL"], two.url)
            create_sessions(two.client())
            self.assertEqual(one.client().list_tables()["TableNames"], [])
            one.stop()
            one.stop()
            self.assertFalse(alive(one.process.pid))
            self.assertIn(":eu-west-1:", two.client().describe_table(TableName="sessions")["Table"]["TableArn"])
            self.assertNotEqual(signal.getsignal(signal.SIGTERM), signal.SIG_DFL)
        self.assertFalse(alive(two.process.pid))
        self.assertEqual(signal.getsignal(signal.SIGTERM), signal.SIG_DFL)

    def test_directory_and_other_thread(self):
        with tempfile.TemporaryDirectory() as scratch, mock.patch.dict(os.environ, MAYFLY_DATA=scratch + "/other"):
            with mayfly.serve(data_dir=pathlib.Path(scratch, "data")) as server:
                create_sessions(server.client())
            names = []

            def reopen():
                with mayfly.serve(data_dir=scratch + "/data", args=["--clock-control"], frozen=True) as server:
                    names.extend(server.client().list_tables()["TableNames"])

            thread = threading.Thread(target=reopen)
            thread.start()
            thread.join()
            self.assertEqual(names, ["sessions"])
            with mayfly.serve() as server:
                self.assertEqual(server.client().list_tables()["TableNames"], [])

    def test_proxy_of_the_environment_is_not_used(self):
        with mock.patch.dict(os.environ, http_proxy="http://127.0.0.1:1"), mayfly.serve() as server:
            server.clock.state()

    def test_failed_start(self):
        with self.assertRaisesRegex(mayfly.StartError, r"^mayfly did not start: exit code \d+\nmayfly: --shards: "):
            mayfly.serve(args=["--shards", "none"])
        with self.assertRaisesRegex(mayfly.StartError, "mayfly was not ready after 0 s"):
            mayfly.serve(timeout=0)
        with self.assertRaisesRegex(ValueError, 'invalid time "tomorrow"; use 2030-01-01T12:00:00Z'):
            mayfly.serve(start="tomorrow")

    def test_missing_program(self):
        with self.assertRaises(mayfly.BinaryNotFound) as caught:
            mayfly.serve(binary="/none/mayfly")
        self.assertEqual(str(caught.exception), f'the argument binary names "/none/mayfly", which is not an executable file; {INSTALL}')
        with tempfile.TemporaryDirectory() as scratch:
            script = pathlib.Path(scratch, "mayfly")
            script.write_text("#!/bin/sh\nexit 1\n")
            script.chmod(0o755)
            with mock.patch.dict(os.environ, PATH=scratch, MAYFLY_BINARY=""), self.assertRaises(mayfly.BinaryNotFound) as caught:
                mayfly.serve()
        self.assertEqual(str(caught.exception), f"the program mayfly is not on PATH; {INSTALL}")

    def test_stops_with_its_process(self):
        for end, number, code in (
            ("", None, 0),
            ("raise SystemExit(3)", None, 3),
            ("import os\nif os.fork() == 0: raise SystemExit\nos.wait(); server.clock.state()", None, 0),
            ("import time; time.sleep(60)", signal.SIGTERM, -signal.SIGTERM),
            ("import time; time.sleep(60)", signal.SIGINT, -signal.SIGINT),
        ):
            with self.subTest(end=end, number=number):
                # A job in the background ignores SIGINT, and so would its children.
                interruptible = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
                program = interruptible + f"import mayfly\nserver = mayfly.serve()\nprint(server.process.pid, flush=True)\n{end}"
                process = subprocess.Popen([sys.executable, "-c", program], env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                pid = int(process.stdout.readline())
                if number is not None:
                    time.sleep(0.1)
                    process.send_signal(number)
                _, errors = process.communicate(timeout=30)
                self.assertEqual(process.returncode, code, errors)
                self.assertTrue(gone(pid))


class Pytest(unittest.TestCase):
    def test_readme(self):
        blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
        subprocess.run([sys.executable, "-c", blocks[0]], env=ENV, check=True, stdout=subprocess.DEVNULL)
        with tempfile.TemporaryDirectory() as scratch:
            for block in blocks[1:]:
                pathlib.Path(scratch, re.match("# (.*)\n", block).group(1)).write_text(block)
            pathlib.Path(scratch, "test_fixtures.py").write_text(
                "urls = set()\n"
                "def test_one(mayfly, mayfly_server): urls.update((mayfly.url, mayfly_server.url))\n"
                "def test_two(mayfly, mayfly_server):\n"
                "    urls.update((mayfly.url, mayfly_server.url))\n"
                "    assert len(urls) == 3 and mayfly_server.clock.state()['frozen']\n")
            # An installed package's entry point loads the plugin. The sources have none.
            plugin = [] if list(PACKAGE.glob("*.dist-info")) else ["-p", "mayfly.pytest_plugin"]
            done = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin],
                cwd=scratch, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertIn("3 passed", done.stdout)


if __name__ == "__main__":
    unittest.main()
