package reminder

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"

	"github.com/mayflydb/mayfly/internal/work/template"
)

// New returns reminders. They do nothing until Run.
func New(o Options) *Reminders {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	m := &Reminders{o: o, rules: map[string]*rule{}, ready: make(chan struct{})}
	for _, s := range o.Rules {
		m.rules[s.Name] = newRule(m, s)
	}
	return m
}

// Run follows the rules and fires reminders until ctx is done. Without rules it does nothing: the
// reminders of earlier rules stay in the table.
func (m *Reminders) Run(ctx context.Context) error {
	failed := make(chan error, len(m.rules))
	var running sync.WaitGroup
	for _, r := range m.rules {
		running.Go(func() { failed <- r.timers.Run(ctx) })
		running.Go(func() {
			<-r.timers.Ready() // the table exists
			r.run(ctx)
		})
	}
	for _, r := range m.rules {
		<-r.timers.Ready()
		r.registered.wait(ctx)
		r.scanned.wait(ctx)
	}
	if ctx.Err() == nil {
		close(m.ready)
	}
	<-ctx.Done()
	running.Wait()
	close(failed)
	var all []error
	for err := range failed {
		all = append(all, err)
	}
	return errors.Join(all...)
}

// Ready returns a channel that is closed when Run reads the expiries, and has found the items of
// every table that exists. It stays open if Run ends before.
func (m *Reminders) Ready() <-chan struct{} { return m.ready }

func newRule(m *Reminders, s Spec) *rule {
	t, err := readInput(s.Input)
	p, err2 := template.ParsePath(s.Attribute)
	zone, err3 := s.zone()
	if err := errors.Join(err, err2, err3); err != nil {
		panic("reminder: a rule was not checked: " + err.Error())
	}
	version, err := json.Marshal(Spec{Table: s.Table, Attribute: s.Attribute, Zone: s.Zone, Offset: s.Offset, Input: s.Input, Past: s.Past})
	if err != nil {
		// a Spec consists of strings and numbers
		panic("reminder: a rule does not marshal: " + err.Error())
	}
	r := &rule{
		Spec: s, Reminders: m, registered: newEvent(), scanned: newEvent(), version: hash(string(version))[:8], path: p, zone: zone, input: t, log: m.o.Logger.With("reminder", s.Name),
	}
	r.timers = r.newTimers()
	return r
}
