package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"sync"
	"sync/atomic"
)

// Package bulk runs exports and imports, and the engine keeps their rows: a row must change in one
// commit with what the job leaves behind, which is a checkpoint or a table.

// Job is the row of an export or an import in the catalogue. A published row is never edited.
type Job struct {
	ID      string // as a backup's; that of an export's checkpoint is the same
	Kind    JobKind
	Running bool            `json:",omitzero"`
	Details json.RawMessage // for package bulk
}

// JobKind says what a job does.
type JobKind string

const (
	JobExport JobKind = "EXPORT"
	JobImport JobKind = "IMPORT"
)

// The rows are in memory too, so they have bounds: on their number, on the bytes of their details
// together, and on those of one. Rows of jobs that have ended make room for new ones.
const (
	JobBytesMax = 64 << 10

	jobsMax      = 10_000
	jobsBytesMax = 64 << 20
)

// jobs holds all rows.
type jobs struct {
	mu      sync.RWMutex
	byID    map[string]*Job
	bytes   int           // of all Details
	changed atomic.Uint64 // as for backups
}

func (j *jobs) set(row *Job) {
	j.remove(row.ID)
	j.byID[row.ID] = row
	j.bytes += len(row.Details)
}

func (j *jobs) remove(id string) {
	if row := j.byID[id]; row != nil {
		j.bytes -= len(row.Details)
		delete(j.byID, id)
	}
}

func jobKey(id string) []byte { return append(catalogueKey(catJob), id...) }

// loadJobs reads the rows. A damaged one is gone for clients; Check reports it.
func (e *Engine) loadJobs() error {
	e.jobs.byID = map[string]*Job{}
	return e.eachCatalogue(catJob, func(key, value []byte) error {
		j, err := readJob(key, value)
		if err != nil {
			e.log.Error("an export or import is forgotten, because its row is damaged", "error", err)
			return nil
		}
		e.jobs.set(j)
		return nil
	})
}

// readJob reads a row.
func readJob(key, value []byte) (*Job, error) {
	j := &Job{}
	err := json.Unmarshal(value, j)
	if err == nil && j.ID != string(key[2:]) {
		err = fmt.Errorf("it describes the job %q", j.ID)
	}
	if err != nil {
		return nil, fmt.Errorf("the row of the export or import %q does not decode: %w", key[2:], err)
	}
	return j, nil
}

// Jobs returns all rows of a kind, oldest first, once the answer is durable.
func (e *Engine) Jobs(kind JobKind) ([]*Job, error) {
	e.jobs.mu.RLock()
	var list []*Job
	for _, j := range e.jobs.byID {
		if j.Kind == kind {
			list = append(list, j)
		}
	}
	e.jobs.mu.RUnlock()
	sort.Slice(list, func(i, j int) bool { return list[i].ID < list[j].ID })
	return list, e.waitCatalogue(&e.jobs.changed)
}

// Job returns a row, or ErrJobNotFound, once the answer is durable.
func (e *Engine) Job(kind JobKind, id string) (*Job, error) {
	e.jobs.mu.RLock()
	j := e.jobs.byID[id]
	e.jobs.mu.RUnlock()
	if err := e.waitCatalogue(&e.jobs.changed); err != nil {
		return nil, err
	}
	if j == nil || j.Kind != kind {
		return nil, ErrJobNotFound
	}
	return j, nil
}

// ForgetJobs removes the rows of jobs that have ended.
func (e *Engine) ForgetJobs(_ context.Context, list []*Job) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	e.catalogue.changing.Lock()
	defer e.catalogue.changing.Unlock()
	return e.forgetJobs(list)
}

// forgetJobs is ForgetJobs for a caller that holds changing.
func (e *Engine) forgetJobs(list []*Job) error {
	return e.commitNew(func(c *commit) error {
		e.jobs.changed.Store(e.lastCommit.Load() + 1)
		e.jobs.mu.Lock()
		defer e.jobs.mu.Unlock()
		for _, j := range list {
			c.batch.Delete(jobKey(j.ID))
			e.jobs.remove(j.ID)
		}
		return nil
	}, nil)
}

// setJob writes and publishes a row. The caller is inside the commit section.
func (e *Engine) setJob(c *commit, j *Job) {
	setJSON(c.batch, jobKey(j.ID), j)
	e.jobs.changed.Store(e.lastCommit.Load() + 1)
	e.jobs.mu.Lock()
	e.jobs.set(j)
	e.jobs.mu.Unlock()
}

// jobRunning reports whether a job is in progress.
func (e *Engine) jobRunning(id string) bool {
	e.jobs.mu.RLock()
	defer e.jobs.mu.RUnlock()
	j := e.jobs.byID[id]
	return j != nil && j.Running
}

// makeRoomForJob removes the oldest rows of jobs that have ended, until there is room for another one.
// The caller holds changing.
func (e *Engine) makeRoomForJob() error {
	e.jobs.mu.RLock()
	count, bytes := len(e.jobs.byID), e.jobs.bytes
	var ended []*Job
	for _, j := range e.jobs.byID {
		if !j.Running {
			ended = append(ended, j)
		}
	}
	e.jobs.mu.RUnlock()
	sort.Slice(ended, func(i, j int) bool { return ended[i].ID < ended[j].ID })
	n := 0
	for ; count >= jobsMax || bytes > jobsBytesMax-2*JobBytesMax; n++ {
		if n == len(ended) {
			return ErrTooManyJobs
		}
		count, bytes = count-1, bytes-len(ended[n].Details)
	}
	if n == 0 {
		return nil
	}
	return e.forgetJobs(ended[:n])
}
