// Package targetfile reads the settings of brokers and services: the file that maps the ARNs of
// deliveries to targets, and the one that names a source of messages ([LoadSource]).
//
// The first is YAML, or JSON, which YAML contains:
//
//	targets:
//	  - arn: "arn:aws:lambda:*:*:function:resize-*"
//	    name: resize
//	    limits: {concurrency: 16, batch: 100, per-second: 500, timeout: 10s}
//	    webhook: {url: "https://example.com/resize", mode: structured, secrets: ["${RESIZE_SECRET}"]}
//	  - arn: "arn:aws:sqs:us-east-1:123456789012:jobs"
//	    nats: {url: "nats://127.0.0.1:4222", subject: jobs}
//	  - arn: "arn:mayfly:exec:::backup"
//	    exec: {command: [/usr/bin/backup, --fast]}
//	  - arn: "arn:aws:sqs:*:*:*"
//	    aws: {endpoint: "http://127.0.0.1:4566", region: us-east-1}
//
// An entry has an ARN or a pattern of ARNs and exactly one kind of target: aws, exec, kafka, nats,
// rabbitmq or webhook. The settings of a kind are the fields of its options ([kinds] is the table),
// in lower case with hyphens: BatchBytes is batch-bytes. Durations are like 500ms, 10s or 15m;
// sizes in bytes may end with KB, MB or GB. In a value, ${NAME} is replaced by the environment's
// variable NAME, which must exist, and $${ by ${. So the file need not contain secrets.
//
// The second has the settings of one source: kafka, kinesis or nats.
//
// All faults of a file are reported together, with their lines, and without the values, which may
// be secrets.
package targetfile
