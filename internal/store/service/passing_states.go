package service

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// passingStates shows the states that a table has at AWS while a change of it is in progress. Here
// changes are complete at once, so the states exist only in memory, for a fixed time after each
// change, and end with the process. A nil passingStates shows none.
//
// mayfly's own tables have no such states: the program that uses them need not wait.
type passingStates struct {
	length  time.Duration
	elapsed func() time.Duration

	mu     sync.Mutex
	tables map[string]passingState
}

// passingState is the state of one table.
type passingState struct {
	until   time.Duration      // by elapsed
	status  string             // of the table; empty: none
	indexes []string           // the global indexes that are CREATING
	removed []IndexDescription // the global indexes that are DELETING
	gone    *TableDescription  // of a table that is DELETING
	// the warm throughput, before it grew, of the global indexes that are warming, and under "" of the table
	warming map[string]engine.Warm
}

// creates reports whether a global index is CREATING.
func (s *passingState) creates(index string) bool { return slices.Contains(s.indexes, index) }

// ownTables begins the names of mayfly's own tables.
const ownTables = "mayfly."

// begin starts the state of a table after a change.
func (p *passingStates) begin(table string, s passingState) {
	if p == nil || strings.HasPrefix(table, ownTables) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.elapsed()
	for name, other := range p.tables { // those that nobody asked for
		if other.until <= now {
			delete(p.tables, name)
		}
	}
	s.until = now + p.length
	p.tables[table] = s
}

// of returns the present state of a table.
func (p *passingStates) of(table string) passingState {
	if p == nil {
		return passingState{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.tables[table]; s.until > p.elapsed() {
		return s
	}
	return passingState{}
}

// deleted returns the names of the tables that are DELETING, after a name.
func (p *passingStates) deleted(after string) (names []string) {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.elapsed()
	for name, s := range p.tables {
		if s.gone != nil && s.until > now && name > after {
			names = append(names, name)
		}
	}
	return names
}

// checkSettled returns the API's error for a change of a table whose last change is in progress.
func (p *passingStates) checkSettled(table string) error {
	doing := map[string]string{statusCreating: "created", statusUpdating: "updated", statusDeleting: "deleted"}
	status := p.of(table).status
	if status == "" {
		return nil
	}
	return &dynamo.Error{
		Code:    dynamo.CodeResourceInUse,
		Message: "Attempt to change a resource which is still in use: Table is being " + doing[status] + ": " + table,
	}
}

// show applies the present state of a table to its description.
func (p *passingStates) show(out *TableDescription) {
	s := p.of(out.TableName)
	showWarming(out, s.warming)
	if s.status == "" {
		return
	}
	out.Status = s.status
	for i := range out.Global {
		if ix := &out.Global[i]; s.creates(ix.Name) {
			ix.Status = statusCreating
		}
	}
	out.Global = append(out.Global, s.removed...)
	sortDescriptions(out.Global)
}

// created begins the state of a new table, and shows it.
func (p *passingStates) created(out *TableDescription) {
	var indexes []string
	for _, ix := range out.Global {
		indexes = append(indexes, ix.Name)
	}
	p.begin(out.TableName, passingState{status: statusCreating, indexes: indexes})
	p.show(out)
}

// updated begins the state of a table that UpdateTable has changed. The answer already shows its
// indexes that are CREATING or DELETING, and those that are warming.
func (p *passingStates) updated(out *TableDescription, warming map[string]engine.Warm) {
	s := passingState{status: statusUpdating, warming: warming}
	for _, ix := range out.Global {
		switch ix.Status {
		case statusCreating:
			s.indexes = append(s.indexes, ix.Name)
		case statusDeleting:
			s.removed = append(s.removed, ix)
		}
	}
	if p != nil {
		out.Status = statusUpdating
	}
	p.begin(out.TableName, s)
}

// removed begins the state of a table that is deleted.
func (p *passingStates) removed(out *TableDescription) {
	p.begin(out.TableName, passingState{status: statusDeleting, gone: out})
}
