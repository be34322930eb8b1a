package service

import (
	"context"
	"slices"

	"github.com/mayflydb/mayfly/internal/store/engine"
)

// UpdateTable changes a table's settings. The change is complete when it returns, except an added
// index, which becomes readable when the existing items have their entries. Unsupported members,
// such as replicas, are refused.
//
// The order of checks: TableName, alone; the shape; the rules of the request, as checkUpdateTable
// lists them; the table's existence and state; the changes against its description (changeTable).
func (s *Service) UpdateTable(ctx context.Context, in *UpdateTableInput) (*TableDescription, error) {
	ref, err := controlTable(in.TableName)
	if err != nil {
		return nil, err
	}
	if err := checkUpdateTable(in); err != nil {
		return nil, err
	}
	if err := s.checkReplicas(in); err != nil {
		return nil, err
	}
	if err := s.passing.checkSettled(ref.name); err != nil {
		return nil, err
	}
	var before engine.TableDesc
	d, err := s.engine.Alter(ctx, namespace, ref.name, func(d *engine.TableDesc, now engine.Instant) error {
		before = *d
		before.Indexes = slices.Clone(d.Indexes)
		return changeTable(d, in, now)
	})
	if err != nil {
		return nil, apiError(err, ref.name)
	}
	if in.Stream != nil && !in.Stream.Enabled.V {
		s.off(ref.name)
	}
	out, err := s.describeNow(ctx, d)
	if err != nil {
		return nil, err
	}
	s.showIndexChange(out, before.Indexes, d)
	warming := warmBefore(&before, in)
	showWarming(out, warming)
	if onlyWarms(in) { // the table stays ACTIVE
		s.passing.begin(ref.name, passingState{warming: warming})
		return out, nil
	}
	s.passing.updated(out, warming)
	return out, nil
}

// describeNow returns a table's description with its present size.
func (s *Service) describeNow(ctx context.Context, d *engine.TableDesc) (*TableDescription, error) {
	var stats engine.TableStats
	if t, err := s.engine.Table(d.Namespace, d.Name); err == nil {
		if stats, err = t.Stats(ctx); err != nil {
			return nil, apiError(err, d.Name)
		}
	}
	return s.describe(d, stats), nil
}

// changeTable applies a request that is valid in itself to a table's description.
func changeTable(d *engine.TableDesc, in *UpdateTableInput, now engine.Instant) error {
	keepWarm(d)
	if err := changeBilling(d, in, now); err != nil {
		return err
	}
	if err := changeIndexes(d, in); err != nil {
		return err
	}
	if err := raiseWarm("table", &d.API.Warm, in.Warm); err != nil {
		return err
	}
	if err := changeStream(d, in.Stream); err != nil {
		return err
	}
	if in.TableClass.Set {
		d.API.TableClass = in.TableClass.V
	}
	if in.DeletionProtection.Set {
		d.API.DeletionProtection = in.DeletionProtection.V
	}
	if in.SSEEnabled.Set {
		d.API.SSEEnabled = in.SSEEnabled.V
	}
	return nil
}

// changeBilling applies BillingMode, ProvisionedThroughput and OnDemandThroughput.
func changeBilling(d *engine.TableDesc, in *UpdateTableInput, now engine.Instant) error {
	onDemand := d.API.OnDemand
	if in.BillingMode.Set {
		onDemand = in.BillingMode.V == billingOnDemand
	}
	if onDemand {
		return toOnDemand(d, in, now)
	}
	if member := onDemandMember(in.OnDemand); member != "" {
		return invalid(invalidValues + member + " for OnDemandThroughput cannot be specified when the table BillingMode is PROVISIONED")
	}
	return toProvisioned(d, in, now)
}

func toOnDemand(d *engine.TableDesc, in *UpdateTableInput, now engine.Instant) error {
	if in.Throughput != nil {
		return invalid(msgThroughputOnDemand)
	}
	if !d.API.OnDemand {
		d.API.OnDemand, d.API.OnDemandSince = true, now
		d.API.Read, d.API.Write = 0, 0
		for i := range d.Indexes {
			d.Indexes[i].Read, d.Indexes[i].Write = 0, 0
		}
	}
	setOnDemandMaximum(&d.API.MaxRead, &d.API.MaxWrite, in.OnDemand)
	return nil
}

// setOnDemandMaximum stores the maxima in the request; -1 removes one.
func setOnDemandMaximum(read, write *int64, o *OnDemandThroughput) {
	if o == nil {
		return
	}
	if o.MaxRead.Set {
		*read = max(o.MaxRead.V, 0)
	}
	if o.MaxWrite.Set {
		*write = max(o.MaxWrite.V, 0)
	}
}

func toProvisioned(d *engine.TableDesc, in *UpdateTableInput, now engine.Instant) error {
	a := &d.API
	switching := a.OnDemand
	switch {
	case in.Throughput == nil && switching:
		return invalid(invalidValues + "ProvisionedThroughput must be specified when BillingMode is PROVISIONED")
	case in.Throughput == nil:
		return nil
	}
	read, write := in.Throughput.Read.V, in.Throughput.Write.V
	if !switching && read == a.Read && write == a.Write {
		return sameThroughput("the table", a.Read, a.Write)
	}
	if !switching {
		noteThroughputChange(a, read, write, now)
	}
	a.OnDemand, a.MaxRead, a.MaxWrite = false, 0, 0
	a.Read, a.Write = read, write
	if switching {
		for i := range d.Indexes {
			d.Indexes[i].MaxRead, d.Indexes[i].MaxWrite = 0, 0
		}
		return indexesHaveThroughput(d, in)
	}
	return nil
}

// noteThroughputChange stores when throughput last rose and fell, and how often it fell today.
func noteThroughputChange(a *engine.APIDesc, read, write int64, now engine.Instant) {
	if read > a.Read || write > a.Write {
		a.LastIncrease = now
	}
	if read < a.Read || write < a.Write {
		if !sameDay(a.LastDecrease, now) {
			a.Decreases = 0
		}
		a.Decreases++
		a.LastDecrease = now
	}
}

// indexesHaveThroughput checks that a table that leaves on-demand mode gets throughput for each
// global index.
func indexesHaveThroughput(d *engine.TableDesc, in *UpdateTableInput) error {
	for i := range d.Indexes {
		ix := &d.Indexes[i]
		given := slices.ContainsFunc(in.GlobalUpdates, func(u IndexUpdate) bool {
			return u.Update != nil && u.Update.Throughput != nil && u.indexName() == ix.Name
		})
		if ix.Global && !given {
			return invalid(invalidValues + "ProvisionedThroughput must be specified for index: " + ix.Name)
		}
	}
	return nil
}

func changeStream(d *engine.TableDesc, spec *StreamSpec) error {
	switch {
	case spec == nil:
		return nil
	case spec.Enabled.V && d.Stream.ViewType != "":
		return invalid("Table already has an enabled stream: TableName: " + d.Name)
	case !spec.Enabled.V && d.Stream.ViewType == "":
		return invalid("Table has no stream to disable: TableName: " + d.Name)
	}
	d.Stream.ViewType = spec.ViewType.V
	return nil
}
