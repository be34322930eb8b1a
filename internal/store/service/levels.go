package service

import (
	"sync"

	"github.com/mayflydb/mayfly/internal/points"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// provisioned is the capacity of a table or a global index.
type provisioned struct {
	index       string // empty: the table
	read, write int64
}

// provision is the capacity of all provisioned tables, as the points show it. A change of a table
// costs nothing for the other ones.
type provision struct {
	mu            sync.Mutex
	tables        map[string][]provisioned
	reads, writes tally
}

// tally is the sum and the greatest of numbers that come and go.
type tally struct {
	sum, most int64
	counts    map[int64]int
}

func (t *tally) add(v int64) {
	if t.counts == nil {
		t.counts = map[int64]int{}
	}
	t.counts[v]++
	t.sum += v
	t.most = max(t.most, v)
}

func (t *tally) remove(v int64) {
	t.sum -= v
	if t.counts[v]--; t.counts[v] > 0 {
		return
	}
	delete(t.counts, v)
	if v == t.most {
		t.most = 0
		for other := range t.counts {
			t.most = max(t.most, other)
		}
	}
}

// noteChange notes the capacity of the table that a request may have created or changed, also if it
// has failed: the change may have been made before.
func (s *Service) noteChange(in any) {
	switch in := in.(type) {
	case *CreateTableInput:
		s.noteLevels(in.TableName)
	case *UpdateTableInput:
		s.noteLevels(in.TableName)
	case *RestoreTableInput:
		s.noteLevels(in.Target)
	case *RestoreToTimeInput:
		s.noteLevels(in.Target)
	case *ImportTableInput:
		if in.Table != nil {
			s.noteLevels(in.Table.TableName)
		}
	}
}

// NoteAllLevels notes the present capacity of all tables and of the account.
func (s *Service) NoteAllLevels() {
	s.noteAccount()
	for _, t := range s.engine.Tables() {
		if d := t.Desc(); d.Namespace == namespace {
			s.noteTable(d.Name)
		}
	}
}

// NoteDrop notes that a table was deleted.
func (s *Service) NoteDrop(space, name string) {
	if space == namespace {
		s.noteTable(name)
	}
}

// noteLevels is noteTable for the name or the ARN in a request.
func (s *Service) noteLevels(given Opt[string]) {
	ref, err := controlTable(given)
	if err != nil {
		return
	}
	s.noteTable(ref.name)
}

// noteTable notes the present provisioned capacity of a table and its global indexes.
func (s *Service) noteTable(name string) {
	p := &s.provision
	p.mu.Lock() // so that no older description replaces a newer one
	defer p.mu.Unlock()
	d := s.engine.DescOf(namespace, name)
	now := provisionedBy(d)
	p.replace(name, now)
	levels := map[points.Key]float64{}
	for _, v := range now {
		k := points.Key{Namespace: points.DynamoDB, Metric: points.ProvisionedReads, Table: name, Index: v.index}
		levels[k] = float64(v.read)
		k.Metric = points.ProvisionedWrites
		levels[k] = float64(v.write)
	}
	if d == nil {
		s.engine.Points().EndTable(name)
	} else {
		s.engine.Points().SetLevels(name, levels)
	}
	s.setAccount()
}

// provisionedBy returns the capacity of a table and its global indexes: none if the table is on
// demand, or d is nil.
func provisionedBy(d *engine.TableDesc) (list []provisioned) {
	if d == nil || d.API.OnDemand {
		return nil
	}
	list = append(list, provisioned{"", d.API.Read, d.API.Write})
	for i := range d.Indexes {
		if ix := &d.Indexes[i]; ix.Global {
			list = append(list, provisioned{ix.Name, ix.Read, ix.Write})
		}
	}
	return list
}

// replace sets the capacity of a table. The caller holds mu.
func (p *provision) replace(table string, now []provisioned) {
	for _, v := range p.tables[table] {
		p.reads.remove(v.read)
		p.writes.remove(v.write)
	}
	delete(p.tables, table)
	for _, v := range now {
		p.reads.add(v.read)
		p.writes.add(v.write)
	}
	if now != nil {
		if p.tables == nil {
			p.tables = map[string][]provisioned{}
		}
		p.tables[table] = now
	}
}

// noteAccount notes what the account may provision and has provisioned.
func (s *Service) noteAccount() {
	s.provision.mu.Lock()
	defer s.provision.mu.Unlock()
	s.setAccount()
}

// setAccount is noteAccount for a caller that holds the lock.
func (s *Service) setAccount() {
	p := &s.provision
	levels := map[points.Key]float64{}
	for metric, v := range map[string]float64{
		"AccountMaxReads":                             accountRead,
		"AccountMaxWrites":                            accountWrite,
		"AccountMaxTableLevelReads":                   tableRead,
		"AccountMaxTableLevelWrites":                  tableWrite,
		"AccountProvisionedReadCapacityUtilization":   100 * float64(p.reads.sum) / accountRead,
		"AccountProvisionedWriteCapacityUtilization":  100 * float64(p.writes.sum) / accountWrite,
		"MaxProvisionedTableReadCapacityUtilization":  100 * float64(p.reads.most) / tableRead,
		"MaxProvisionedTableWriteCapacityUtilization": 100 * float64(p.writes.most) / tableWrite,
	} {
		levels[points.Key{Namespace: points.DynamoDB, Metric: metric}] = v
	}
	s.engine.Points().SetLevels("", levels)
}
