package engine

import "context"

// ResourcePolicy is the resource policy of a table or stream. The zero value means none.
type ResourcePolicy struct {
	Text string
	// Revision changes with the text, and only grows in the life of the database.
	Revision Instant
}

// revise completes a policy that replaces old: it sets the revision, or clears it if there is no
// text. A revision is the instant of the change, as at AWS, or follows the last one if that instant
// is taken.
func (next *ids) revise(p *ResourcePolicy, old ResourcePolicy, now Instant) {
	switch p.Text {
	case "":
		*p = ResourcePolicy{}
	case old.Text:
		p.Revision = old.Revision
	default:
		next.Revision = max(now, next.Revision+1)
		p.Revision = next.Revision
	}
}

// SetStreamPolicy changes the resource policy of a stream: change edits its Text, and the engine
// sets its Revision. It returns the new policy. It returns an error of change unchanged, and then
// changes nothing.
//
// The policy is in the stream's description and not in the table's, because a disabled stream and
// the stream of a deleted table stay readable for the retention. Until they are gone, their policy
// must restrict their readers.
func (e *Engine) SetStreamPolicy(_ context.Context, namespace, table, label string, change func(*ResourcePolicy) error) (ResourcePolicy, error) {
	if err := e.enter(); err != nil {
		return ResourcePolicy{}, err
	}
	defer e.leave()
	e.catalogue.changing.Lock()
	defer e.catalogue.changing.Unlock()
	next := e.catalogue.ids
	var policy ResourcePolicy
	err := e.commitNew(func(c *commit) error {
		// found in the commit section, where the trimmer and rolling shards change descriptions too
		st := e.findStream(ownStream, namespace, table, label)
		if st == nil {
			return ErrStreamNotFound
		}
		old := st.desc.Load()
		d := old.clone()
		if err := change(&d.Policy); err != nil {
			return err
		}
		next.revise(&d.Policy, old.Policy, c.now)
		policy = d.Policy
		setJSON(c.batch, catalogueKey(catIDs), next)
		e.publishStream(c.batch, st, d)
		return nil
	}, func() { e.catalogue.ids = next })
	return policy, err
}
