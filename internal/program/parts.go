package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/mayflydb/mayfly/guard/journal"
	"github.com/mayflydb/mayfly/internal/objects"
	"github.com/mayflydb/mayfly/internal/sdk"
	"github.com/mayflydb/mayfly/internal/sink/targetfile"
	"github.com/mayflydb/mayfly/target"
	"github.com/mayflydb/mayfly/timeseries"
)

// Parts are the libraries and commands of mayfly-full: clients of brokers and of AWS's services,
// Parquet, the commands of the toolkits, and bench. They are two fifths of its size. mayfly has none
// of them, so it is small and starts fast; for a command line that needs one it starts mayfly-full.
type Parts struct {
	Commands func() any        // AllCommands
	Kinds    []targetfile.Kind // of targets, besides webhooks and commands
	Bench    func(context.Context, BenchFlags, Terminal) error
	// BenchExpiry scores the expiry of an endpoint.
	BenchExpiry func(context.Context, sdk.Endpoint, BenchExpiryFlags, Terminal) error
	Simulate    func(context.Context, SimulateFlags, Terminal) error
	Torture     func(context.Context, TortureFlags, Terminal) error
	Source      func(text string, l *slog.Logger) (Source, error) // an address, or a file of settings
	Archive     func(ctx context.Context, place string, l *slog.Logger) (Archive, error)
	Bucket      func(ctx context.Context, address string, l *slog.Logger) (journal.Store, error)
	Objects     func(ctx context.Context, address string, l *slog.Logger) (objects.Store, error) // of a bucket, for exports
}

// parts are the parts in this program. Main sets them.
var parts Parts

// commands returns the command line as a struct.
func (p Parts) commands() any {
	if p.Commands == nil {
		return new(smallCLI)
	}
	return p.Commands()
}

// missing returns the error of a command line that names a command of mayfly-full, also in a request
// for help or for completions. It returns nil for others.
func (p Parts) missing(args []string) *missingPart {
	if p.Commands != nil {
		return nil
	}
	if len(args) > 1 && (args[0] == "help" || strings.HasPrefix(args[0], "__complete")) {
		args = args[1:]
	}
	for len(args) > 0 && strings.HasPrefix(args[0], "-") { // the command may follow flags with their values
		switch {
		case args[0] == "-h" || args[0] == "--help" || args[0] == "--":
			return nil
		case strings.Contains(args[0], "=") || len(args) == 1:
			args = args[1:]
		default:
			args = args[2:]
		}
	}
	if len(args) == 0 || !slices.Contains(namesElsewhere(), args[0]) {
		return nil
	}
	return &missingPart{"mayfly " + args[0]}
}

// namesElsewhere returns the names of the commands that smallCLI lacks.
func namesElsewhere() (names []string) {
	for field := range reflect.TypeFor[smallCLI]().Fields() {
		if field.Type == reflect.TypeFor[elsewhere]() {
			names = append(names, strings.ToLower(field.Name))
		}
	}
	return names
}

// kinds returns the kinds of targets: in mayfly, the names of those that only mayfly-full has.
func (p Parts) kinds() []targetfile.Kind {
	if p.Kinds == nil {
		return []targetfile.Kind{{Name: "aws"}, {Name: "kafka"}, {Name: "nats"}, {Name: "rabbitmq"}}
	}
	return p.Kinds
}

// missingPart is the error of a command line that needs a part which this program does not have. A
// command has printed nothing before it returns one, since mayfly-full then begins anew.
type missingPart struct{ what string }

func (m *missingPart) Error() string { return m.what + " needs mayfly-full" }

// Terminal is where a part prints.
type Terminal struct {
	Out, Err io.Writer
	// Step shows a step of a long run: in one redrawn line on a terminal, otherwise in a line for each
	// step that has a result.
	Step  func(part, total int, text, result string)
	Clear func() // erases that line
}

func (s streams) terminal() Terminal {
	b := newBar(s.err)
	return Terminal{Out: s.out, Err: s.err, Clear: b.clear, Step: func(part, total int, text, result string) {
		if result != "" {
			text += ": " + result
		}
		switch {
		case b.terminal != nil:
			b.draw(int64(part), int64(total), text)
		case result != "":
			fmt.Fprintf(s.err, "%d/%d %s\n", part, total, text)
		}
	}}
}

// Source is a broker's stream of messages, for mayfly series ingest.
type Source interface {
	Name() string                    // for messages, without passwords
	Checkpoint(wanted string) string // the name of the checkpoint in the form that the broker accepts
	Ingest(ctx context.Context, r *timeseries.Receiver, o Ingest) error
}

// Ingest has the options that the readers of all brokers share.
type Ingest struct {
	DB            *dynamodb.Client // for leases and checkpoints, if the broker keeps none
	Checkpoint    string
	Lease         time.Duration
	UntilCaughtUp bool
	Saved         func() // called when messages are durable
	Lost          func(what string)
	Logger        *slog.Logger
}

// Archive is a series as Parquet files, in a directory or a bucket: see package archive. Its methods
// have the options that the program has flags for.
type Archive interface {
	String() string
	Export(ctx context.Context, s *timeseries.Series, o Export) (Exported, error)
	Follow(ctx context.Context, s *timeseries.Series, o Follow) error
	Target(ctx context.Context, wait time.Duration, mark string) (t target.Target, shut func(), err error)
	Union(ctx context.Context, live *timeseries.Reader, q timeseries.Query) iter.Seq2[timeseries.Sample, error]
}

// Export has the options of mayfly series export.
type Export struct {
	From, To       time.Time
	Segments, Rows int
	Eventual       bool
	Progress       func(Exported)
}

// Exported counts the samples of an export: in the table, in the files, and in files only.
type Exported struct {
	Read    int64 `json:"read"`
	Written int64 `json:"written"`
	Kept    int64 `json:"kept"`
	Files   int64 `json:"files"`
}

// Follow has the options of mayfly series archive.
type Follow struct {
	DB       *dynamodb.Client
	Streams  *dynamodbstreams.Client
	Name     string
	Every    time.Duration
	Rows     int
	Mark     string
	Lease    time.Duration
	Archived func(name string, samples int)
}

// Advise returns an error with a next step.
func Advise(err error, format string, args ...any) error { return advise(err, format, args...) }

// Misuse returns an error of the command line, such as a wrong value, with a next step.
func Misuse(err error, next string, args ...any) error { return misused(err, next, args...) }

// MisuseOptions is Misuse for an error that names options by their fields: it names the flags.
func MisuseOptions(err error, next string) error { return misusedOptions(err, nil, next) }

// isAdvised reports whether an error has its next step already.
func isAdvised(err error) bool {
	var a *advised
	return errors.As(err, &a)
}

// Version returns the version of this program and the commit that it was built from, which is empty
// if the toolchain did not record it.
func Version() (name, commit string) { return version(), readBuild().source() }
