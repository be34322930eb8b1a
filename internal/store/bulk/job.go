package bulk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/mayflydb/mayfly/internal/objects"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// Status is the state of a job, as the API names it.
type Status string

const (
	InProgress Status = "IN_PROGRESS"
	Completed  Status = "COMPLETED"
	Failed     Status = "FAILED"
)

// Errors of requests. The service translates them. So it does with engine.ErrJobNotFound.
var (
	// ErrTokenConflict is the error of a request with the client token of another one.
	ErrTokenConflict = errors.New("another request had the same client token")
	ErrTooManyJobs   = errors.New("too many jobs are in progress")
)

// Limits on jobs in progress at once, as at Amazon.
const (
	ExportsMax = 300
	ImportsMax = 50
)

// Job has what an export and an import share.
type Job struct {
	ID           string // like a backup's; orders jobs by their beginning
	Status       Status
	Begun, Ended engine.Instant // Ended is 0 while the job is in progress
	TableName    string
	TableID      string
	Digest       string // of the request, to compare it with another one of the same token
	// why the job failed: a code such as S3NoSuchBucket, and a sentence
	FailureCode, FailureMessage string
}

// RequestError is the error of a request that can never succeed.
type RequestError struct{ Err error }

func (e *RequestError) Error() string { return e.Err.Error() }

func (e *RequestError) Unwrap() error { return e.Err }

// checkSize returns an error if a request is too large to be remembered with its results.
func checkSize(request any) error {
	if n, most := len(encode(request)), engine.JobBytesMax-2*failureMax; n > most {
		return &RequestError{fmt.Errorf("the request takes %d bytes to remember; the limit is %d", n, most)}
	}
	return nil
}

// ExportRequest asks for an export.
type ExportRequest struct {
	Table string
	// the instant of a full export, or the exclusive end of an incremental one; engine.Never: the
	// present instant
	At engine.Instant
	// the inclusive beginning of an incremental export
	Incremental bool
	From        engine.Instant
	OldImages   bool   // the records of an incremental export have the old images too
	Token       string // ClientToken; empty: none
	Bucket      string
	Prefix      string
	// echoed by the API, and otherwise without effect
	BucketOwner, Algorithm, KMSKey string
}

// Export is an export and its request; At is never engine.Never.
type Export struct {
	Job
	ExportRequest
	Items, Bytes int64  // of a completed export
	Manifest     string // the name of manifest-summary.json in the bucket; empty until the end
}

// ImportRequest asks for an import.
type ImportRequest struct {
	Table       engine.TableDesc // the new table
	Token       string           // ClientToken; empty: none
	Bucket      string
	Prefix      string
	BucketOwner string
	Format      string // DYNAMODB_JSON or CSV
	Compression string // GZIP, ZSTD or NONE
	Delimiter   string // of CSV; empty: a comma
	Header      []string
}

// Import is an import and its request.
type Import struct {
	Job
	ImportRequest
	Errors         int64 // items that were not imported
	ProcessedBytes int64 // uncompressed
	Processed      int64 // items and errors
	Imported       int64
}

// Options configure a Runner.
type Options struct {
	Engine    *engine.Engine
	Namespace string // of the tables
	// Bucket returns the store that is mapped to the name of a bucket; ErrNoBucket if there is none
	Bucket func(ctx context.Context, name string) (objects.Store, error)
	// TableARN returns the ARN of a table
	TableARN func(name string) string
	Logger   *slog.Logger
}

// ErrNoBucket is the error of a bucket that has no mapping.
var ErrNoBucket = errors.New("no such bucket")
