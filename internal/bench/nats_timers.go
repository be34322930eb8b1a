package bench

import (
	"context"
	"fmt"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// natsTimers are JetStream's scheduled messages, in a stream in memory for each experiment.
type natsTimers struct{ *natsServer }

func (n natsTimers) describe() Endpoint {
	return Endpoint{Name: "NATS", Version: n.conn.ConnectedServerVersion(), URL: n.url, Durability: "memory", Notes: []string{"JetStream's scheduled messages"}}
}

func (natsTimers) entries() (name, difference string) {
	return "scheduled messages", "in memory, without items or images"
}

func (n natsTimers) arm(ctx context.Context, p *plan, removed func(item int, at time.Time)) (stop func(), err error) {
	name := n.name + "-scheduled"
	stream, err := n.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: name, Subjects: []string{name + ".>"}, Storage: jetstream.MemoryStorage, MaxAge: natsKept, AllowMsgSchedules: true,
	})
	if err != nil {
		return nil, fmt.Errorf("create a stream with schedules at %s: %w", n.url, err)
	}
	drop := func() { n.js.DeleteStream(context.WithoutCancel(ctx), name) } // otherwise the server empties it after natsKept
	if !stream.CachedInfo().Config.AllowMsgSchedules {
		drop()
		return nil, fmt.Errorf("%s has no scheduled messages: NATS %s is too old, start 2.12 or later", n.url, n.conn.ConnectedServerVersion())
	}
	target := name + ".due"
	unfollow, err := n.follow(ctx, name, target, func(body []byte, at time.Time) {
		if item, ok := leadingNumber(body); ok {
			removed(int(item), at)
		}
	})
	if err != nil {
		drop()
		return nil, err
	}
	stop = func() {
		unfollow()
		drop()
	}
	for from := 0; from < p.items && err == nil; from += natsBatch {
		err = n.schedule(ctx, name, target, p, from, min(from+natsBatch, p.items))
	}
	if err != nil {
		stop()
		return nil, fmt.Errorf("schedule messages at %s: %w", n.url, err)
	}
	return stop, nil
}

// schedule publishes a message for each item number from up to, but not including, to. The server
// sends it to the target at the item's deadline.
func (n natsTimers) schedule(ctx context.Context, stream, target string, p *plan, from, to int) error {
	var sent []jetstream.PubAckFuture
	for item := from; item < to; item++ {
		m := natsgo.NewMsg(fmt.Sprintf("%s.%d", stream, item))
		m.Data = appendDigits(nil, uint64(item))
		m.Header.Set(jetstream.ScheduleHeader, "@at "+p.deadline(item).UTC().Format(time.RFC3339Nano))
		m.Header.Set(jetstream.ScheduleTargetHeader, target)
		future, err := n.js.PublishMsgAsync(m)
		if err != nil {
			return err
		}
		sent = append(sent, future)
	}
	for _, future := range sent {
		select {
		case <-future.Ok():
		case err := <-future.Err():
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
