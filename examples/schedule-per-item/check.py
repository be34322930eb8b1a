"""Runs published.py and careful.py against the endpoint, and checks for each known flaw of the pattern whether it shows.

Only this file uses mayfly's own API: it moves the clock (POST /_mayfly/clock), and reads the dead letters.
"""

import importlib
import json
import logging
import os
import sys
import time
import urllib.request
import uuid

import boto3

from lambda_loop import Loop

ENDPOINT = os.environ["AWS_ENDPOINT_URL"]
SOON = 20  # seconds to wait for the server's background work
HOUR = 3600

dynamodb = boto3.client("dynamodb", endpoint_url=ENDPOINT)
streams = boto3.client("dynamodbstreams", endpoint_url=ENDPOINT)
scheduler = boto3.client("scheduler", endpoint_url=ENDPOINT)
flaws = []


def flaw(number, title, published, careful):
    """Declares a scenario, which returns whether the flaw shows. published and careful are the wanted results."""

    def declare(scenario):
        flaws.append((number, title, {"published": published, "careful": careful}, scenario))
        return scenario

    return declare


def clock(action, **body):
    request = urllib.request.Request(f"{ENDPOINT}/_mayfly/clock/{action}".rstrip("/"), data=json.dumps(body).encode() if action else None)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def now():
    """Returns the database's present second."""
    return clock("")["now_ms"] // 1000


def set_clock(seconds):
    clock("set", to_ms=round(seconds * 1000))


def until(condition):
    """Waits for a condition that the server brings about in the background. Returns whether it holds in time."""
    deadline = time.monotonic() + SOON
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


class World:
    """A table with the program under test on its stream."""

    def __init__(self, handler, stream=True, sort_key="S"):
        self.handler = handler
        self.name = "items-" + uuid.uuid4().hex[:12]
        self.pk = self.name[-4:]
        specification = {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}}
        table = dynamodb.create_table(
            TableName=self.name,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}, {"AttributeName": "SK", "AttributeType": sort_key}],
            KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}, {"AttributeName": "SK", "KeyType": "RANGE"}],
            **(specification if stream else {}),
        )["TableDescription"]
        if stream:
            self.loop = Loop(table["LatestStreamArn"], handler.lambda_handler)

    def add_stream(self):
        specification = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
        table = dynamodb.update_table(TableName=self.name, StreamSpecification=specification)["TableDescription"]
        self.loop = Loop(table["LatestStreamArn"], self.handler.lambda_handler)

    def enable_ttl(self):
        dynamodb.update_time_to_live(TableName=self.name, TimeToLiveSpecification={"Enabled": True, "AttributeName": "ttl"})

    def key(self, sk):
        return {"PK": {"S": self.pk}, "SK": sk if isinstance(sk, dict) else {"S": sk}}

    def put(self, sk, ttl=None, **more):
        item = {**self.key(sk), **more}
        if ttl is not None:
            item["ttl"] = {"N": str(ttl)}
        dynamodb.put_item(TableName=self.name, Item=item)

    def update(self, sk, expression, **values):
        arguments = {"ExpressionAttributeValues": {f":{name}": {"N": str(value)} for name, value in values.items()}} if values else {}
        dynamodb.update_item(
            TableName=self.name, Key=self.key(sk), UpdateExpression=expression, ExpressionAttributeNames={"#ttl": "ttl"}, **arguments
        )

    def exists(self, sk):
        return "Item" in dynamodb.get_item(TableName=self.name, Key=self.key(sk), ConsistentRead=True)

    def schedules(self):
        """Returns the schedules that delete items of this table."""
        found = []
        for page in scheduler.get_paginator("list_schedules").paginate():
            for listed in page["Schedules"]:
                try:
                    schedule = scheduler.get_schedule(GroupName=listed["GroupName"], Name=listed["Name"])
                except scheduler.exceptions.ResourceNotFoundException:
                    continue
                if json.loads(schedule["Target"]["Input"])["TableName"] == self.name:
                    found.append(schedule)
        return found

    def records(self):
        arn = self.loop.arn
        found = []
        for shard in streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
            iterator = streams.get_shard_iterator(StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
            found += streams.get_records(ShardIterator=iterator)["Records"]
        return found


@flaw(1, "an item without a TTL raises KeyError", published=True, careful=False)
def without_ttl(handler):
    w = World(handler)
    w.put("a")
    w.loop.drain()
    return w.loop.answers[0] == {"statusCode": 500}


@flaw(2, "after an error the rest of the batch is lost, since 500 is success to Lambda", published=True, careful=False)
def rest_of_batch(handler):
    w = World(handler)
    w.put("a")
    w.put("b", now() + HOUR)
    w.loop.drain()
    return not w.schedules()


@flaw(3, "a TTL that is added later is ignored", published=True, careful=False)
def added_later(handler):
    w = World(handler)
    w.put("a")
    w.loop.drain()
    w.update("a", "SET #ttl = :t", t=now() + HOUR)
    w.loop.drain()
    return not w.schedules()


@flaw(4, "an item whose TTL was taken away is deleted all the same", published=True, careful=False)
def taken_away(handler):
    w, at = World(handler), now() + HOUR
    w.put("a", at)
    w.loop.drain()
    w.update("a", "REMOVE #ttl")
    w.loop.drain()
    set_clock(at)
    until(lambda: not w.schedules())
    return not w.exists("a")


@flaw(5, "an updated schedule is not deleted after its firing", published=True, careful=False)
def leaked(handler):
    w, at = World(handler), now() + HOUR
    w.put("a", at - 60)
    w.loop.drain()
    w.update("a", "SET #ttl = :t", t=at)
    w.loop.drain()
    set_clock(at)
    if not until(lambda: not w.exists("a")):
        sys.exit("the updated schedule did not fire")
    global SOON
    patience, SOON = SOON, 1
    gone = until(lambda: not w.schedules())
    SOON = patience
    return not gone


@flaw(6, "an item that was renewed just before is deleted", published=True, careful=False)
def renewed(handler):
    w, at = World(handler), now() + HOUR
    w.put("a", at)
    w.loop.drain()
    w.update("a", "SET #ttl = :t", t=at + HOUR)  # before the function has read the record
    set_clock(at)
    if not until(lambda: not w.schedules()):
        sys.exit("the schedule did not fire")
    return not w.exists("a")


@flaw(7, "keys that are long, have other characters, or run together make no schedule", published=True, careful=False)
def names(handler):
    for keys in (["a#b"], ["x" * 60], ["é"]):
        w = World(handler)
        for sk in keys:
            w.put(sk, now() + HOUR)
        w.loop.drain()
        if len(w.schedules()) != len(keys):
            return True
    first, second = World(handler), World(handler)
    second.pk = first.pk  # the same key in two tables
    first.put("a", now() + HOUR)
    second.put("a", now() + HOUR)
    first.loop.drain()
    second.loop.drain()
    return len(first.schedules()) + len(second.schedules()) != 2


@flaw(8, "the machine's time zone moves the deadline", published=True, careful=False)
def zone(handler):
    os.environ["TZ"] = "America/New_York"
    time.tzset()
    try:
        w, at = World(handler), now() + 24 * HOUR
        w.put("a", at)
        w.loop.drain()
        set_clock(at - HOUR)
        early = until(lambda: not w.schedules()) if handler.__name__ == "published" else not w.exists("a")
        return early
    finally:
        del os.environ["TZ"]
        time.tzset()


@flaw(9, "a redelivered INSERT is an error", published=True, careful=False)
def redelivered(handler):
    w = World(handler)
    w.put("a", now() + HOUR)
    w.loop.drain()
    w.loop.after.clear()
    w.loop.drain()
    if len(w.schedules()) != 1:
        sys.exit("a redelivery made a second schedule")
    return w.loop.answers[-1] == {"statusCode": 500}


@flaw(10, "a TTL with a fraction raises ValueError", published=True, careful=False)
def fraction(handler):
    w = World(handler)
    w.put("a", f"{now() + HOUR}.5")
    w.loop.drain()
    return not w.schedules()


@flaw(11, "an item whose TTL has passed already is never deleted", published=False, careful=False)
def passed(handler):
    w = World(handler)
    w.put("a", now() - HOUR)
    w.loop.drain()
    return not until(lambda: not w.exists("a"))


@flaw(12, "an older record that comes again undoes a newer one, or the newer one is lost", published=True, careful=False)
def older_again(handler):
    w, at = World(handler), now() + HOUR
    w.put("a", at)
    w.put("no ttl")
    w.update("a", "SET #ttl = :t", t=at + HOUR)
    w.loop.drain()
    oldest = w.records()[0]
    handler.lambda_handler({"Records": [w.loop.as_event(oldest)]}, None)
    wanted = time.strftime("at(%Y-%m-%dT%H:%M:%S)", time.gmtime(at + HOUR))
    return [s["ScheduleExpression"] for s in w.schedules()] != [wanted]


@flaw(13, "items from before the stream have no schedule", published=True, careful=False)
def before_the_stream(handler):
    w = World(handler, stream=False)
    w.put("a", now() + HOUR)
    w.add_stream()
    w.loop.drain()
    if hasattr(handler, "backfill"):
        handler.backfill(w.name)
    return not w.schedules()


@flaw(14, "what happens while the function is down for a day is never scheduled", published=True, careful=True)
def down_for_a_day(handler):
    w, at = World(handler), now() + 30 * HOUR
    w.put("a", at)
    w.put("b", at)
    set_clock(now() + 26 * HOUR)
    w.loop.drain()
    return not w.schedules()


@flaw(14.1, "… also where the table's own TTL is on, as a net", published=False, careful=False)
def own_ttl(handler):
    w, at = World(handler), now() + 30 * HOUR
    w.enable_ttl()
    w.put("a", at)
    set_clock(at - 0.001)
    if not w.exists("a"):
        sys.exit("the table's own TTL was early")
    set_clock(at)
    return w.exists("a")


@flaw(15, "sort keys that are no strings raise KeyError", published=True, careful=False)
def number_keys(handler):
    w = World(handler, sort_key="N")
    w.put({"N": "1"}, now() + HOUR)
    w.loop.drain()
    return not w.schedules()


@flaw(16, "the record of the deletion looks like a user's", published=True, careful=True)
def user_identity(handler):
    w, at = World(handler), now() + HOUR
    w.put("a", at)
    w.loop.drain()
    set_clock(at)
    until(lambda: not w.exists("a"))
    removal = w.records()[-1]
    return removal["eventName"] == "REMOVE" and "userIdentity" not in removal


@flaw(17, "the deletion is up to a minute late, or early", published=False, careful=False)
def late(handler):
    w, at = World(handler), now() + HOUR
    w.put("a", at)
    w.loop.drain()
    set_clock(at - 0.001)
    early = not w.exists("a")
    set_clock(at)
    return early or not until(lambda: not w.exists("a"))


@flaw(18, "a burst of new items throttles CreateSchedule", published=False, careful=False)
def burst(handler):
    w, at = World(handler), now() + HOUR
    for first in range(0, 300, 25):
        requests = [{"PutRequest": {"Item": {**w.key(str(n)), "ttl": {"N": str(at)}}}} for n in range(first, first + 25)]
        dynamodb.batch_write_item(RequestItems={w.name: requests})
    w.loop.drain()
    failed = any(answer in ({"statusCode": 500},) or (answer or {}).get("batchItemFailures") for answer in w.loop.answers)
    set_clock(at)
    emptied = until(lambda: dynamodb.scan(TableName=w.name, Select="COUNT")["Count"] == 0)
    return failed or not emptied


@flaw(19, "a deletion that fails for good leaves no trace", published=False, careful=False)
def no_trace(handler):
    w, at = World(handler), now() + HOUR
    w.put("a", at)
    w.loop.drain()
    dynamodb.delete_table(TableName=w.name)
    set_clock(at)

    def told():
        try:
            return w.name in json.dumps(dynamodb.scan(TableName="mayfly.deadletters")["Items"], default=str)
        except dynamodb.exceptions.ResourceNotFoundException:
            return False

    return not until(told)


def main():
    logging.disable(logging.CRITICAL)  # the functions' own logs
    clock("freeze")
    wrong = 0
    chosen = sys.argv[1:]
    for number, title, expected, scenario in flaws:
        if chosen and str(number) not in chosen:
            continue
        shown = {}
        for program in ("published", "careful"):
            shown[program] = scenario(importlib.import_module(program))
        verdict = "" if shown == expected else f"   <-- expected {expected}"
        wrong += shown != expected
        print(f"{number:>4}  published: {'shows' if shown['published'] else '-':5}  careful: {'shows' if shown['careful'] else '-':5}  {title}{verdict}", flush=True)
    if wrong:
        sys.exit(f"{wrong} flaws are not as they should be")


if __name__ == "__main__":
    main()
