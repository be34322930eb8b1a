package service

import (
	"context"
	"time"

	"github.com/mayflydb/mayfly/internal/store/engine"
)

// The states of a table or a global index in answers. A change is complete when it is answered,
// except an added index: it stays CREATING until it is built, and its table is ACTIVE meanwhile, as
// at AWS. A table that is restored from a backup is CREATING until it has all items. The other states
// occur only in the answer to a change, unless the service shows transient states.
const (
	statusActive   = "ACTIVE"
	statusCreating = "CREATING"
	statusUpdating = "UPDATING"
	statusDeleting = "DELETING"
)

// DescribeTable returns the current description of a table.
// It checks TableName, then the table's existence.
func (s *Service) DescribeTable(ctx context.Context, in *TableNameInput) (*TableDescription, error) {
	ref, err := controlTable(in.TableName)
	if err != nil {
		return nil, err
	}
	if gone := s.passing.of(ref.name).gone; gone != nil {
		return gone, nil
	}
	t, err := s.engine.TableToDescribe(namespace, ref.name)
	if err != nil {
		return nil, apiError(err, ref.name)
	}
	var stats engine.TableStats
	if !t.Desc().Restore.Running {
		if stats, err = t.Stats(ctx); err != nil {
			return nil, apiError(err, ref.name)
		}
	}
	d, err := t.Describe()
	if err != nil {
		return nil, apiError(err, ref.name)
	}
	out := s.describe(d, stats)
	s.passing.show(out)
	return out, nil
}

// describe returns the catalogue's description of a table in the API's form.
func (s *Service) describe(d *engine.TableDesc, stats engine.TableStats) *TableDescription {
	out := &TableDescription{
		TableName:          d.Name,
		TableID:            d.UUID,
		ARN:                s.tableARN(d.Name),
		Status:             statusActive,
		Created:            d.Created.Time(),
		Attributes:         namesAndTypes(d.API.Definitions),
		KeySchema:          describeKey(d.Key),
		ItemCount:          stats.Items,
		SizeBytes:          stats.Bytes,
		StreamViewType:     d.Stream.ViewType,
		StreamLabel:        d.Stream.Label,
		TableClass:         d.API.TableClass,
		DeletionProtection: d.API.DeletionProtection,
		SSEEnabled:         d.API.SSEEnabled,
	}
	if d.Stream.Label != "" {
		out.StreamARN = s.streamARN(d.Name, d.Stream.Label)
	}
	if r := d.Restore; r.Table != "" {
		out.Restore = &RestoreSummary{TableARN: s.tableARN(r.Table), At: r.At.Time(), InProgress: r.Running}
		if !r.ToInstant {
			out.Restore.BackupARN = s.backupOf(r.Table, r.Backup)
		}
	}
	if d.Restore.Running {
		out.Status = statusCreating
	}
	s.describeBilling(out, &d.API)
	for i := range d.Indexes {
		ix := s.describeIndex(d, &d.Indexes[i], stats)
		if d.Indexes[i].Global {
			out.Global = append(out.Global, ix)
		} else {
			out.Local = append(out.Local, ix)
		}
	}
	return out
}

func (s *Service) describeBilling(out *TableDescription, a *engine.APIDesc) {
	out.BillingMode = billingProvisioned
	out.Read, out.Write = a.Read, a.Write
	out.LastIncrease, out.LastDecrease = timeOrZero(a.LastIncrease), timeOrZero(a.LastDecrease)
	if sameDay(a.LastDecrease, s.engine.Now()) {
		out.Decreases = a.Decreases
	}
	out.Warm = describeWarm(tableWarm(a))
	if !a.OnDemand {
		return
	}
	out.BillingMode = billingOnDemand
	out.OnDemandSince = a.OnDemandSince.Time()
	out.OnDemand = maxima(a.MaxRead, a.MaxWrite)
}

// maxima returns the OnDemandThroughput of a table or index, or nil if it has none.
func maxima(read, write int64) *OnDemandThroughput {
	if read == 0 && write == 0 {
		return nil
	}
	return &OnDemandThroughput{MaxRead: maximum(read), MaxWrite: maximum(write)}
}

// maximum returns an on-demand maximum as the API shows it: -1 if it is not set.
func maximum(n int64) Opt[int64] {
	if n == 0 {
		return Some[int64](-1)
	}
	return Some(n)
}

func (s *Service) describeIndex(d *engine.TableDesc, ix *engine.IndexDesc, stats engine.TableStats) IndexDescription {
	out := IndexDescription{
		Name:           ix.Name,
		ARN:            s.indexARN(d.Name, ix.Name),
		KeySchema:      describeKey(ix.Key),
		ProjectionType: ix.Projection.Type,
		NonKey:         ix.Projection.NonKey,
		ItemCount:      stats.Indexes[ix.Name].Items,
		SizeBytes:      stats.Indexes[ix.Name].Bytes,
		Read:           ix.Read,
		Write:          ix.Write,
		OnDemand:       maxima(ix.MaxRead, ix.MaxWrite),
	}
	if ix.Global {
		out.Warm = describeWarm(indexWarm(d.API.OnDemand, ix))
	}
	switch {
	case d.Restore.Running && ix.Global:
		out.Status = statusCreating
	case ix.Building:
		out.Status, out.Backfilling = statusCreating, Some(true)
	case ix.Global:
		out.Status = statusActive
	}
	return out
}

func namesAndTypes(attrs []engine.KeyAttr) [][2]string {
	out := make([][2]string, len(attrs))
	for i, a := range attrs {
		out[i] = [2]string{a.Name, a.Kind.String()}
	}
	return out
}

func describeKey(k engine.KeySchema) [][2]string {
	out := make([][2]string, 0, k.Len())
	for _, a := range k.Partition {
		out = append(out, [2]string{a.Name, keyTypeHash})
	}
	for _, a := range k.Sort {
		out = append(out, [2]string{a.Name, keyTypeRange})
	}
	return out
}

func timeOrZero(i engine.Instant) time.Time {
	if i == 0 {
		return time.Time{}
	}
	return i.Time()
}

// sameDay reports whether two instants lie in the same UTC day. Decreases of throughput are counted
// by day.
func sameDay(a, b engine.Instant) bool {
	const day = 24 * 60 * 60 * 1000
	return a != 0 && a/day == b/day
}
