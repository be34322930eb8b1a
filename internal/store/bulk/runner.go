package bulk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/objects"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

const (
	// atOnce is the number of jobs that work at the same time. Further ones wait.
	atOnce = 2
	// tokenAge is how long a client token is remembered, and keptAge a job that has ended, as at
	// Amazon.
	tokenAge = 8 * hour
	keptAge  = 90 * 24 * hour

	hour engine.Instant = 60 * 60 * 1000
)

// Runner runs jobs. Its methods are safe for concurrent use.
type Runner struct {
	o     Options
	wake  chan struct{} // has an element when a job may have been added
	slots chan struct{} // has an element for each job that works

	beginning sync.Mutex // held while a request is compared with earlier ones and becomes a job

	mu    sync.Mutex
	taken map[string]*counts // the jobs of this process that wait, work, or could not be ended
}

// New returns a runner. It starts nothing.
func New(o Options) *Runner {
	return &Runner{o: o, wake: make(chan struct{}, 1), slots: make(chan struct{}, atOnce), taken: map[string]*counts{}}
}

// Run runs jobs until ctx is done, first those that an earlier process left in progress.
func (r *Runner) Run(ctx context.Context) error {
	if err := r.o.Engine.RemoveOrphans(ctx); err != nil {
		return err
	}
	var working sync.WaitGroup
	defer working.Wait()
	for {
		for _, kind := range []engine.JobKind{engine.JobExport, engine.JobImport} {
			jobs, err := r.o.Engine.Jobs(kind)
			if err != nil {
				return err
			}
			for _, job := range jobs {
				if c := r.take(job); c != nil {
					working.Go(func() { r.work(ctx, job, c) })
				}
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.wake:
		}
	}
}

// take takes a job in progress. It returns nil if the job has ended or is taken.
func (r *Runner) take(job *engine.Job) *counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken[job.ID] != nil {
		return nil
	}
	// A job leaves taken after its last row is stored, so the row must be read after taken.
	if now, err := r.o.Engine.Job(job.Kind, job.ID); err != nil || !now.Running {
		return nil
	}
	c := &counts{}
	r.taken[job.ID] = c
	return c
}

// added wakes Run.
func (r *Runner) added() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// work runs a job to its end. A job that ctx stops begins again at the next start.
func (r *Runner) work(ctx context.Context, job *engine.Job, c *counts) {
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-r.slots }()
	run := r.runExport
	if job.Kind == engine.JobImport {
		run = r.runImport
	}
	if err := run(ctx, job, c); err != nil && ctx.Err() == nil {
		r.o.Logger.Error("the end of an export or import could not be stored; it begins again at the next start", "job", job.ID, "error", err)
		return
	}
	if ctx.Err() == nil {
		r.mu.Lock()
		delete(r.taken, job.ID)
		r.mu.Unlock()
	}
}

// progress returns the counts of an import that this process works on, or nil.
func (r *Runner) progress(id string) *counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taken[id]
}

// jobOf is what the functions below need of an Export and an Import.
type jobOf[T any] interface {
	*T
	job() *Job
	token() string
}

func (e *Export) job() *Job     { return &e.Job }
func (e *Export) token() string { return e.Token }
func (i *Import) job() *Job     { return &i.Job }
func (i *Import) token() string { return i.Token }

// all returns all jobs of a kind, oldest first.
func all[T any, P jobOf[T]](r *Runner, kind engine.JobKind) ([]P, error) {
	rows, err := r.o.Engine.Jobs(kind)
	if err != nil {
		return nil, err
	}
	list := make([]P, 0, len(rows))
	for _, row := range rows {
		if j := read[T, P](row); r.kept(row, j.job()) {
			list = append(list, j)
		}
	}
	return list, nil
}

// kept reports whether a job is shown.
func (r *Runner) kept(row *engine.Job, j *Job) bool {
	return row.Running || r.o.Engine.Now()-j.Ended < keptAge
}

// read returns the job in a row. Of a damaged row it knows nothing but the id.
func read[T any, P jobOf[T]](row *engine.Job) P {
	var read T
	if err := json.Unmarshal(row.Details, &read); err != nil {
		read = *new(T)
		P(&read).job().fail(&fault{"RowDamaged", fmt.Errorf("what the database knew of this export or import is damaged: %w", err)})
	}
	j := P(&read).job()
	if j.ID = row.ID; row.Running {
		j.Status = InProgress
	}
	return &read
}

// damaged returns the reason why a job cannot be done, if its row is damaged.
func (j *Job) damaged() error {
	if j.FailureCode != "RowDamaged" {
		return nil
	}
	return &fault{j.FailureCode, errors.New(j.FailureMessage)}
}

// find returns a job, or engine.ErrJobNotFound.
func find[T any, P jobOf[T]](r *Runner, kind engine.JobKind, id string) (P, error) {
	row, err := r.o.Engine.Job(kind, id)
	if err != nil {
		return nil, err
	}
	j := read[T, P](row)
	if !r.kept(row, j.job()) {
		return nil, engine.ErrJobNotFound
	}
	return j, nil
}

// admit returns the job of an earlier request with the same token, or nil if a new job may begin. It
// forgets jobs that ended long ago.
func admit[T any, P jobOf[T]](ctx context.Context, r *Runner, kind engine.JobKind, token, digest string, most int) (P, error) {
	rows, err := r.o.Engine.Jobs(kind)
	if err != nil {
		return nil, err
	}
	now := r.o.Engine.Now()
	running := 0
	var old []*engine.Job
	for _, row := range rows {
		j := read[T, P](row)
		job := j.job()
		switch {
		case token != "" && j.token() == token && now-job.Begun < tokenAge:
			if job.Digest != digest {
				return nil, ErrTokenConflict
			}
			return j, nil
		case row.Running:
			running++
		case !r.kept(row, job):
			old = append(old, row)
		}
	}
	if running >= most {
		return nil, ErrTooManyJobs
	}
	if len(old) > 0 {
		return nil, r.o.Engine.ForgetJobs(ctx, old)
	}
	return nil, nil
}

// digest returns a hash of a request.
func digest(request any) string {
	sum := sha256.Sum256(encode(request))
	return hex.EncodeToString(sum[:])
}

// encode returns a value of a type that always marshals as JSON.
func encode(value any) json.RawMessage {
	text, err := json.Marshal(value)
	invariant.Check(err == nil, "%T does not marshal: %v", value, err)
	return text
}

// end sets how a job ended.
func (j *Job) end(now engine.Instant, err error) {
	j.Ended, j.Status = now, Completed
	if err != nil {
		j.fail(err)
	}
}

// fail sets why a job has failed.
func (j *Job) fail(err error) {
	j.Status = Failed
	j.FailureCode, j.FailureMessage = failure(err)
}

// failureMax bounds the message of a failure in bytes: it stays in a row and in memory.
const failureMax = 2000

// placed is an error of a bucket, whose message does not name the server's directory.
type placed struct {
	error
	message string
}

func (p *placed) Error() string { return p.message }
func (p *placed) Unwrap() error { return p.error }

// hidePlace replaces the place of a bucket in the message of an error with the bucket's name.
func hidePlace(err error, store objects.Store, bucket string) error {
	if err == nil {
		return nil
	}
	message := err.Error()
	return &placed{err, strings.ReplaceAll(message, store.String(), bucket)}
}

// fault is an error with a code for descriptions.
type fault struct {
	code string
	error
}

func (f *fault) Unwrap() error { return f.error }

// failure returns the code and the message of a job that has failed. Amazon documents no list of codes;
// S3NoSuchBucket and S3AccessDenied are its own.
func failure(err error) (code, message string) {
	code = "S3Error"
	f, coded := errors.AsType[*fault](err)
	switch {
	case coded:
		code = f.code
	case errors.Is(err, ErrNoBucket):
		code = "S3NoSuchBucket"
	case errors.Is(err, fs.ErrPermission):
		code = "S3AccessDenied"
	case errors.Is(err, engine.ErrDiskFull):
		code = "DiskFull"
	case errors.Is(err, engine.ErrBackupNotFound): // the database was restored from a backup
		code = "SnapshotMissing"
	case engine.IsDamage(err):
		code = "TableDamaged"
	}
	if message = err.Error(); len(message) > failureMax {
		message = message[:failureMax] + "…"
	}
	return code, message
}
