package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// experimentTriggers measures the rate of stream records to a webhook, and to NATS.
const experimentTriggers = "triggers"

// keyMark precedes an item's number in a record's keys.
const keyMark = `"Keys":{"pk":{"S":"item-`

// Kinds of targets.
const (
	toWebhook = "webhook"
	toNATS    = "nats"
)

// recordTarget is a target of records.
type recordTarget struct {
	to, about, arn string
	batch          int
}

// recordTargets returns the targets of the run. A message of NATS has at most a megabyte by
// default, so its batches are as small as Lambda's.
func (r *run) recordTargets() []recordTarget {
	list := []recordTarget{{toWebhook, "stream records to a webhook, up to 1000 a call", recordsARN, 1000}}
	if r.NATS != "" {
		list = append(list, recordTarget{toNATS, "stream records to a stream of NATS JetStream and on to its reader, up to 100 a message", natsARN, 100})
	}
	return list
}

// triggers measures the program's own server: it fills a table, and then for each target a trigger
// delivers the stream from its beginning.
func (r *run) triggers(ctx context.Context) (err error) {
	server, c, err := r.startDelivering(ctx, experimentTriggers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.close(), c.close()) }()
	for i, to := range r.recordTargets() {
		r.step("%d %s", r.Items, to.about)
		if i == 0 {
			if err := r.fillRecords(ctx, server); err != nil {
				return err
			}
		}
		x, err := r.deliver(ctx, server, c, to)
		if err != nil {
			return err
		}
		r.report.Delivered = append(r.report.Delivered, x)
		r.result("%.0f records/s", x.PerS)
	}
	return nil
}

func (r *run) fillRecords(ctx context.Context, server *endpoint) error {
	t, err := server.createTable(ctx, r.prefix, tableSpread)
	if err != nil {
		return err
	}
	return server.fillTable(ctx, t, 0, r.Items, farDeadline)
}

// deliver measures a trigger that delivers all records to a target.
func (r *run) deliver(ctx context.Context, server *endpoint, c *collector, to recordTarget) (x Delivered, err error) {
	arn, err := server.streamARN(ctx, server.tables[tableSpread])
	if err != nil {
		return x, err
	}
	defer c.forget()
	if to.to == toNATS {
		stop, err := r.nats.follow(ctx, r.nats.name, r.nats.subject, c.note)
		if err != nil {
			return x, err
		}
		defer stop()
	}
	if _, err := awaitIdle(ctx, server.used, idleLimit); err != nil {
		return x, err
	}
	cpu := server.cpuEach()
	w := c.expect(keyMark, 0, &plan{first: time.Now(), items: r.Items})
	uuid, err := server.createMapping(ctx, arn, to)
	if err != nil {
		return x, err
	}
	if err := w.await(ctx, graceFor(r.Items)); err != nil {
		return x, err
	}
	x = Delivered{About: to.about, To: to.to, Target: ownName, Records: r.Items, PerS: w.perS(), CPUUS: cpu(r.Items)}
	_, x.Twice, x.Lost = w.faults()
	if x.Lost > 0 {
		r.problem(x.Lost, fmt.Sprintf("%d of %d %s did not arrive", x.Lost, r.Items, to.about))
	}
	return x, server.deleteMapping(ctx, uuid)
}

// mappings is the path of triggers in Lambda's API.
const mappings = "/2015-03-31/event-source-mappings/"

// createMapping creates a trigger, and returns its UUID.
func (e *endpoint) createMapping(ctx context.Context, arn string, to recordTarget) (uuid string, err error) {
	body, err := e.callREST(ctx, "POST "+mappings, fmt.Sprintf(
		`{"EventSourceArn":%q,"FunctionName":%q,"StartingPosition":"TRIM_HORIZON","BatchSize":%d}`, arn, to.arn, to.batch))
	if err == nil && !member(body, "UUID", &uuid) {
		err = fmt.Errorf("a trigger has no UUID: %.200q", body)
	}
	return uuid, err
}

// deleteMapping deletes a trigger. While it is being created, which may outlast the delivery of all
// records, the server refuses that.
func (e *endpoint) deleteMapping(ctx context.Context, uuid string) error {
	for limit := time.Now().Add(setupLimit); time.Now().Before(limit); {
		body, err := e.callREST(ctx, "GET "+mappings+uuid, "")
		if err != nil {
			return err
		}
		var state string
		if !member(body, "State", &state) {
			return fmt.Errorf("a trigger has no state: %.200q", body)
		}
		if state != "Creating" {
			break
		}
		if err := Pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	_, err := e.callREST(ctx, "DELETE "+mappings+uuid, "")
	return err
}
