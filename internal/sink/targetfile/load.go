package targetfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/mayflydb/mayfly/internal/yamlfile"
	"github.com/mayflydb/mayfly/target"
)

// Options are the program's settings for the targets of a file.
type Options struct {
	Kinds []Kind           // kinds of targets besides exec and webhook
	Now   func() time.Time // real time, for the signatures of webhooks
	// addresses, host:port, at which the program itself listens: no target of AWS's services may
	// lead there
	Self   []string
	Logger *slog.Logger                               // for the AWS SDK's own log. Default: none
	Env    func(name string) (value string, set bool) // the environment. Default: os.LookupEnv
}

const (
	maxFile    = 1 << 20 // bytes
	maxTargets = 1000

	maxConcurrency         = 1000
	maxBatch               = 1000
	maxPerSecond           = 1e9
	minTimeout, maxTimeout = 10 * time.Millisecond, 15 * time.Minute
	maxARN                 = 2048
)

// Load reads a file and creates its targets. They do not connect yet. Call shut after the last
// delivery to close them.
func Load(ctx context.Context, path string, o Options) (mappings []target.Mapping, shut func() error, err error) {
	text, err := readFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("targets file: %w", err)
	}
	if mappings, shut, err = parse(ctx, text, o); err != nil {
		return nil, nil, fmt.Errorf("targets file %s: %w", path, err)
	}
	return mappings, shut, nil
}

// readFile returns the text of a file; of one that is too large, only so much that document refuses
// it.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}

// file is the content of a file.
type file struct {
	Targets []entry
}

// entry is one target of a file.
type entry struct {
	ARN    string
	Name   string
	Limits target.Limits

	kind     Kind
	settings any // of its kind
}

// parse creates the targets of a file's text.
func parse(ctx context.Context, text []byte, o Options) ([]target.Mapping, func() error, error) {
	var f file
	d, list, err := decode(text, &f, o)
	if err != nil {
		return nil, nil, err
	}
	if d.missing != "" {
		return nil, nil, &MissingKindError{d.missing}
	}
	var m maker
	if len(d.wrong) == 0 {
		m.check(d, f, list)
	}
	if len(d.wrong) == 0 {
		m.make(ctx, d, f, list, o)
	}
	if len(d.wrong) > 0 {
		_ = m.shut()
		return nil, nil, d.wrong.Err()
	}
	return m.mappings, m.shut, nil
}

// decode decodes the text of a file into the value behind a pointer. The decoder has the mistakes.
func decode(text []byte, value any, o Options) (*decoder, places, error) {
	root, err := document(text)
	if err != nil {
		return nil, places{}, err
	}
	d := &decoder{env: o.Env, kinds: slices.Concat(ownKinds, o.Kinds)}
	if d.env == nil {
		d.env = os.LookupEnv
	}
	return d, d.decode(root, value), nil
}

// document returns the value of a text.
func document(text []byte) (*yaml.Node, error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("it is larger than %d bytes", maxFile)
	}
	root, err := yamlfile.Parse(text)
	if root == nil && err == nil {
		err = errors.New(`it is empty; it must begin with "targets:"`)
	}
	return root, err
}

// maker creates mappings from entries.
type maker struct {
	mappings []target.Mapping
	closers  []io.Closer
}

// shut closes the targets, the last first.
func (m *maker) shut() error {
	var all []error
	for _, c := range slices.Backward(m.closers) {
		all = append(all, c.Close())
	}
	m.closers = nil
	return errors.Join(all...)
}

// check checks the entries as far as possible without creating targets.
func (m *maker) check(d *decoder, f file, list places) {
	if !list.has("targets") {
		d.complain(list.line(), `no targets; the file must begin with "targets:"`)
	}
	if len(f.Targets) > maxTargets {
		d.complain(list.line("targets"), "%d targets are too many; the limit is %d", len(f.Targets), maxTargets)
	}
	arns, names := map[string]int{}, map[string]int{}
	for i := range f.Targets {
		e := &f.Targets[i]
		at := list.under("targets", i)
		switch {
		case e.ARN == "":
			d.complain(at.line(), "a target needs an arn")
		case len(e.ARN) > maxARN:
			d.complain(at.line("arn"), "the arn is longer than %d bytes", maxARN)
		case !strings.HasPrefix(e.ARN, "arn:") && !strings.HasPrefix(e.ARN, "*"):
			d.complain(at.line("arn"), `%q is neither an ARN ("arn:…") nor a pattern that begins with "*"`, e.ARN)
		case arns[e.ARN] != 0:
			d.complain(at.line("arn"), "%s is mapped twice, first at line %d", e.ARN, arns[e.ARN])
		}
		arns[e.ARN] = at.line("arn")
		e.Name = cmp.Or(e.Name, e.ARN)
		if first := names[e.Name]; first != 0 && at.has("name") {
			d.complain(at.line("name"), "the name %s is used twice, first at line %d", e.Name, first)
		}
		names[e.Name] = at.line("name")
		checkLimits(d, e.Limits, at)
		if names := d.kindNames(); len(at.present(names)) != 1 {
			d.complain(at.line(), "a target needs exactly one of %s; this one has %s", strings.Join(names, ", "), listOf(at.present(names)))
		}
	}
}

func checkLimits(d *decoder, l target.Limits, at places) {
	wrong := func(name, format string, args ...any) {
		if at.has("limits", name) {
			d.complain(at.line("limits", name), "limits."+name+": "+format, args...)
		}
	}
	if l.Concurrency < 1 || l.Concurrency > maxConcurrency {
		wrong("concurrency", "%d is not between 1 and %d", l.Concurrency, maxConcurrency)
	}
	if l.Batch < 1 || l.Batch > maxBatch {
		wrong("batch", "%d is not between 1 and %d", l.Batch, maxBatch)
	}
	if l.PerSecond <= 0 || l.PerSecond > maxPerSecond || math.IsNaN(l.PerSecond) {
		wrong("per-second", "%v is not above 0 and at most %g; drop it for no limit", l.PerSecond, float64(maxPerSecond))
	}
	if l.Timeout < minTimeout || l.Timeout > maxTimeout {
		wrong("timeout", "%v is not between %v and %v", l.Timeout, minTimeout, maxTimeout)
	}
}

// make creates the target of each entry.
func (m *maker) make(ctx context.Context, d *decoder, f file, list places, o Options) {
	for i := range f.Targets {
		e := &f.Targets[i]
		to, err := e.kind.make(ctx, e.settings, &e.Limits, o)
		if err != nil {
			d.complainAll(list.under("targets", i), e.kind.Name, err)
			continue
		}
		e.Limits.Batch = cmp.Or(e.Limits.Batch, e.kind.batch)
		if c, ok := to.(io.Closer); ok {
			m.closers = append(m.closers, c)
		}
		m.mappings = append(m.mappings, target.Mapping{ARN: e.ARN, Target: to, Limits: e.Limits, Name: e.Name})
	}
}

// ReadOne decodes a YAML or JSON file with the settings of exactly one of the fields of the struct
// behind value. what names the struct in messages: "a source". check then checks the settings.
func ReadOne(path, what string, value any, o Options, check func() error) error {
	text, err := readFile(path)
	if err != nil {
		return err
	}
	if err := readOne(text, what, value, o, check); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func readOne(text []byte, what string, value any, o Options, check func() error) error {
	d, at, err := decode(text, value, o)
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(settingsOf(reflect.TypeOf(value).Elem())))
	present := at.present(names)
	switch {
	case len(d.wrong) > 0:
	case len(present) != 1:
		last := len(names) - 1
		d.complain(at.line(), "%s needs exactly one of %s and %s; this one has %s", what, strings.Join(names[:last], ", "), names[last], listOf(present))
	default:
		if err := check(); err != nil {
			d.complainAll(at, present[0], err)
		}
	}
	if len(d.wrong) > 0 {
		return d.wrong.Err()
	}
	return nil
}
