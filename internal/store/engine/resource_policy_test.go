package engine

import (
	"context"
	"errors"
	"testing"
	"time"
)

// setPolicy sets the text of a table's policy; empty removes the policy.
func (d *db) setPolicy(tab *Table, text string) ResourcePolicy {
	d.t.Helper()
	name := tab.Desc().Name
	desc, err := d.Alter(context.Background(), "default", name, func(desc *TableDesc, _ Instant) error {
		desc.API.Policy.Text = text
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return desc.API.Policy
}

func (d *db) setStreamPolicy(s *StreamDesc, text string) ResourcePolicy {
	d.t.Helper()
	p, err := d.SetStreamPolicy(context.Background(), s.Namespace, s.Table, s.Label, func(p *ResourcePolicy) error {
		p.Text = text
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return p
}

// A revision changes with the text only, and none comes twice, though the clock stands still: not
// for another resource, not after a restart, and not for a table that is deleted and made again.
func TestPolicyRevisions(t *testing.T) {
	dir := newDirectory()
	d := dir.open(t)
	tab := d.table("events", func(desc *TableDesc) { desc.API.Policy.Text = "created" })
	last := tab.Desc().API.Policy.Revision
	if last == 0 {
		t.Error("the policy of CreateTable has no revision")
	}
	next := func(about string, p ResourcePolicy) {
		t.Helper()
		if p.Revision <= last {
			t.Errorf("%s: revision %d follows %d", about, p.Revision, last)
		}
		last = p.Revision
	}
	next("changed", d.setPolicy(tab, "a"))
	if again := d.setPolicy(tab, "a"); again.Revision != last {
		t.Errorf("the same text: revision %d follows %d", again.Revision, last)
	}
	next("of its stream", d.setStreamPolicy(d.stream(tab), "a"))
	if gone := d.setPolicy(tab, ""); gone != (ResourcePolicy{}) {
		t.Errorf("removed: got %+v", gone)
	}
	next("set again", d.setPolicy(tab, "a"))
	if _, err := d.DropTable(context.Background(), "default", "events", nil); err != nil {
		t.Fatal(err)
	}
	d.close()

	d = dir.open(t)
	tab = d.table("events", func(desc *TableDesc) { desc.API.Policy.Text = "a" })
	next("of a table made again", tab.Desc().API.Policy)
	d.verify()
}

// The policies of a table and of its stream survive a restart, which replaces the stream's shards.
func TestPoliciesSurviveRestart(t *testing.T) {
	dir := newDirectory()
	d := dir.open(t)
	tab := d.table("events")
	d.put(tab, item("pk", "a", "sk", 1))
	want := [2]ResourcePolicy{d.setPolicy(tab, `{"of": "table"}`), d.setStreamPolicy(d.stream(tab), `{"of": "stream"}`)}
	d.close()

	d = dir.open(t)
	tab, err := d.Table("default", "events")
	if err != nil {
		t.Fatal(err)
	}
	if got := [2]ResourcePolicy{tab.Desc().API.Policy, d.stream(tab).Policy}; got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	d.put(tab, item("pk", "a", "sk", 2))
	d.verify()
}

// A stream keeps its policy while it can be read: after it is disabled, replaced, and its table
// deleted. Then both are gone.
func TestPolicyGoesWithTheStream(t *testing.T) {
	d := openMemory(t, func(o *Options) { o.ClockControl, o.StreamRetention = true, time.Hour })
	tab := d.table("events")
	d.put(tab, item("pk", "a", "sk", 1))
	old := d.stream(tab)
	p := d.setStreamPolicy(old, "a")
	for _, view := range []string{"", "KEYS_ONLY"} {
		_, err := d.Alter(context.Background(), "default", "events", func(desc *TableDesc, _ Instant) error {
			desc.Stream.ViewType = view
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if s := d.stream(tab); s.ID == old.ID || s.Policy != (ResourcePolicy{}) {
		t.Errorf("the new stream %d has the policy %+v", s.ID, s.Policy)
	}
	if _, err := d.DropTable(context.Background(), "default", "events", nil); err != nil {
		t.Fatal(err)
	}
	s, err := d.StreamByLabel("default", "events", old.Label)
	if err != nil || s.Policy != p {
		t.Errorf("after the deletion of the table: %+v, %v", s, err)
	}
	d.setStreamPolicy(old, "b")
	d.advance(2 * time.Hour)
	d.verify()
	_, err = d.SetStreamPolicy(context.Background(), "default", "events", old.Label, func(*ResourcePolicy) error { return nil })
	if !errors.Is(err, ErrStreamNotFound) {
		t.Errorf("after the retention: %v", err)
	}
}

// An error of change changes nothing.
func TestPolicyRefused(t *testing.T) {
	d := openMemory(t)
	s := d.stream(d.table("events"))
	want := d.setStreamPolicy(s, "a")
	refused := errors.New("refused")
	_, err := d.SetStreamPolicy(context.Background(), "default", "events", s.Label, func(p *ResourcePolicy) error {
		p.Text = "b"
		return refused
	})
	if err != refused {
		t.Errorf("got %v", err)
	}
	if s, err := d.StreamByLabel("default", "events", s.Label); err != nil || s.Policy != want {
		t.Errorf("got %+v, %v", s, err)
	}
}
