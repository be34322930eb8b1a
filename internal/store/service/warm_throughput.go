package service

import (
	"slices"
	"strconv"

	"github.com/mayflydb/mayfly/internal/store/engine"
)

// The warm throughput of every table on demand, in units a second.
const (
	initialWarmRead  = 12_000
	initialWarmWrite = 4_000

	urlInitialThroughput = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html#on-demand-capacity-mode-initial"
)

// warmOf returns the warm throughput of a table or index: what was requested or reached before, and
// at least what its present settings imply.
func warmOf(stored engine.Warm, onDemand bool, read, write int64) engine.Warm {
	if onDemand {
		read, write = initialWarmRead, initialWarmWrite
	}
	return engine.Warm{Read: max(stored.Read, read), Write: max(stored.Write, write)}
}

func tableWarm(a *engine.APIDesc) engine.Warm { return warmOf(a.Warm, a.OnDemand, a.Read, a.Write) }

func indexWarm(onDemand bool, ix *engine.IndexDesc) engine.Warm {
	return warmOf(ix.Warm, onDemand, ix.Read, ix.Write)
}

// keepWarm stores the present warm throughput of a table and its global indexes, so that it stays when
// the settings that imply it change.
func keepWarm(d *engine.TableDesc) {
	d.API.Warm = tableWarm(&d.API)
	for i := range d.Indexes {
		if ix := &d.Indexes[i]; ix.Global {
			ix.Warm = indexWarm(d.API.OnDemand, ix)
		}
	}
}

// describeWarm returns a warm throughput in the API's form.
func describeWarm(w engine.Warm) WarmDescription {
	return WarmDescription{Read: w.Read, Write: w.Write, Status: statusActive}
}

// checkWarmPresent refuses a WarmThroughput without members. owner is the table or index in messages.
func checkWarmPresent(owner string, w *WarmThroughput) error {
	if w != nil && !w.Read.Set && !w.Write.Set {
		return invalid(invalidValues + "WarmThroughput must have at least one of ReadUnitsPerSecond or WriteUnitsPerSecond specified for " + owner)
	}
	return nil
}

// checkNewWarm checks the WarmThroughput of a new table or index against its other throughput.
func checkNewWarm(owner string, w *WarmThroughput, t *Throughput) error {
	if w == nil {
		return nil
	}
	least, readMember, writeMember := engine.Warm{Read: initialWarmRead, Write: initialWarmWrite}, "", ""
	if t != nil {
		least = engine.Warm{Read: t.Read.V, Write: t.Write.V}
		readMember, writeMember = "ReadCapacityUnits", "WriteCapacityUnits"
	}
	below := func(member, of string) error {
		text := requestedWarm(member, owner) + "is lower than initial throughput for OnDemand. See: " + urlInitialThroughput
		if of != "" {
			text = requestedWarm(member, owner) + "is lower than " + of + " of ProvisionedThroughput"
		}
		return invalid(text)
	}
	switch {
	case w.Read.Set && w.Read.V < least.Read:
		return below("ReadUnitsPerSecond", readMember)
	case w.Write.Set && w.Write.V < least.Write:
		return below("WriteUnitsPerSecond", writeMember)
	}
	return warmRange(w)
}

func requestedWarm(member, owner string) string {
	return invalidValues + "Requested " + member + " for WarmThroughput for " + owner + " "
}

// warmRange checks the upper bound.
func warmRange(w *WarmThroughput) error {
	for _, m := range []struct {
		name  string
		value Opt[int64]
	}{{"ReadUnitsPerSecond", w.Read}, {"WriteUnitsPerSecond", w.Write}} {
		if m.value.V > throughputMax {
			return invalid("Given value " + strconv.FormatInt(m.value.V, 10) + " for " + m.name + " is out of bounds")
		}
	}
	return nil
}

// newWarm returns the stored form of the WarmThroughput of a new table or index.
func newWarm(w *WarmThroughput) engine.Warm {
	if w == nil {
		return engine.Warm{}
	}
	return engine.Warm{Read: w.Read.V, Write: w.Write.V}
}

// raiseWarm applies WarmThroughput to a table or index. A member that is missing stays; none can
// be lowered.
func raiseWarm(owner string, stored *engine.Warm, w *WarmThroughput) error {
	if w == nil {
		return nil
	}
	raise := func(member string, to *int64, requested Opt[int64]) error {
		if requested.Set && requested.V < *to {
			return invalid(requestedWarm(member, owner) + "is lower than current WarmThroughput, decreasing WarmThroughput is not supported")
		}
		*to = requested.Or(*to)
		return nil
	}
	if err := checkWarmPresent(owner, w); err != nil {
		return err
	}
	if err := raise("ReadUnitsPerSecond", &stored.Read, w.Read); err != nil {
		return err
	}
	if err := raise("WriteUnitsPerSecond", &stored.Write, w.Write); err != nil {
		return err
	}
	return warmRange(w)
}

// warmOwner is an index in the messages about its WarmThroughput.
func warmOwner(index string) string { return "index " + index }

// checkWarmAlone refuses a WarmThroughput of the table together with other changes. Only the warm
// throughput of its indexes can change with it.
func checkWarmAlone(in *UpdateTableInput) error {
	if in.Warm == nil {
		return nil
	}
	if slices.ContainsFunc(in.GlobalUpdates, func(u IndexUpdate) bool { return u.Create != nil }) {
		return invalid(invalidValues + "Create global secondary index cannot be specified when updating WarmThroughput")
	}
	for _, kind := range updateKinds(in) {
		if kind != "WarmThroughput" && kind != "GlobalSecondaryIndexUpdates" {
			return warmNotAlone()
		}
	}
	for _, u := range in.GlobalUpdates {
		if u.Update == nil || u.Update.Throughput != nil || u.Update.OnDemand != nil {
			return warmNotAlone()
		}
	}
	return nil
}

func warmNotAlone() error {
	return invalid(invalidValues + "WarmThroughput must be the only operation in the request")
}

// warmBefore returns the warm throughput of the table, under "", and of the global indexes that a
// request changes, as it was before.
func warmBefore(before *engine.TableDesc, in *UpdateTableInput) map[string]engine.Warm {
	old := map[string]engine.Warm{}
	if in.Warm != nil {
		old[""] = tableWarm(&before.API)
	}
	for _, u := range in.GlobalUpdates {
		if u.Update != nil && u.Update.Warm != nil {
			if ix := before.Index(u.indexName()); ix != nil {
				old[ix.Name] = indexWarm(before.API.OnDemand, ix)
			}
		}
	}
	return old
}

// showWarming shows the old warm throughput of a table and its indexes with the status UPDATING: at
// AWS, it takes minutes to grow.
func showWarming(out *TableDescription, old map[string]engine.Warm) {
	if w, growing := old[""]; growing {
		out.Warm = WarmDescription{Read: w.Read, Write: w.Write, Status: statusUpdating}
	}
	for i := range out.Global {
		ix := &out.Global[i]
		if w, growing := old[ix.Name]; growing {
			ix.Warm = WarmDescription{Read: w.Read, Write: w.Write, Status: statusUpdating}
		}
	}
}

// onlyWarms reports whether a valid request changes nothing but warm throughput.
func onlyWarms(in *UpdateTableInput) bool {
	for _, kind := range updateKinds(in) {
		if kind != "WarmThroughput" && kind != "GlobalSecondaryIndexUpdates" {
			return false
		}
	}
	return !slices.ContainsFunc(in.GlobalUpdates, func(u IndexUpdate) bool {
		return u.Update == nil || u.Update.Throughput != nil || u.Update.OnDemand != nil
	})
}
