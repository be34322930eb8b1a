package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/console"
	"github.com/mayflydb/mayfly/internal/work/reminder"
	"github.com/mayflydb/mayfly/internal/work/trigger"
)

type serveCommand struct {
	Config configFlag `help:"YAML or JSON file that sets any of these flags by name. The command line and the environment override it." placeholder:"FILE"`

	Port           int    `help:"Port to listen on; 0 chooses a free one and prints it." default:"8000"`
	Host           string `help:"Address to listen on." default:"127.0.0.1"`
	InsecureListen bool   `help:"Allow an address that other machines can reach without credentials."`
	keyFlags
	auditFlags
	tlsFlags
	pageFlags

	Data       string            `help:"Directory of the database, created if missing. Default: keep everything in memory." placeholder:"DIR"`
	Memory     bool              `help:"Keep everything in memory."`
	Durability mayfly.Durability `help:"With --data: sync (acknowledged means on disk) or async (a crash of the machine may lose the last writes). Default: sync." default:"default" placeholder:"sync"`
	CacheBytes byteSize          `help:"Block cache of the store." default:"64MB"`
	BodyBudget byteSize          `help:"Memory for the bodies of requests; from 32MB. Large ones wait for room." default:"128MB"`

	Expiry      mayfly.Expiry `help:"For tables without the tag mayfly:expiry: strict (an item is gone at its deadline) or aws (it stays visible until removed, some time after its deadline, as at Amazon)." default:"strict" placeholder:"strict"`
	ExpiryDelay string        `help:"With --expiry aws: distribution of the removal delays: observed (8 to 30 minutes), fixed:10m or uniform:8m-30m." default:"observed"`
	ExpirySeed  uint64        `help:"With --expiry aws: random seed of the delays." default:"0"`

	ClockControl *bool         `help:"Allow requests to /_mayfly/clock to move the clock. Default: on in memory, off with --data." negatable:""`
	Start        time.Time     `help:"Start time of the clock of a new database, such as 2030-01-01. Default: now." placeholder:"TIME"`
	Frozen       bool          `help:"Start with the clock standing still: exactly at --start, in a new database. mayfly clock and /_mayfly/clock move it."`
	Region       string        `help:"Region in ARNs. Requests for every region are served." default:"us-east-1"`
	Account      string        `help:"Account number in ARNs." default:"000000000000"`
	Retention    time.Duration `name:"stream-retention" help:"How long stream records are kept." default:"24h"`
	HoldBytes    byteSize      `help:"Most stream data to keep longer for schedules and triggers that lag behind. Above it, new schedules are refused; nothing is dropped." default:"8GB"`
	Shards       int           `help:"Open shards of each table's stream." default:"4"`
	ShardBytes   byteSize      `help:"Size at which a shard is closed and continued by a child." default:"64MB"`

	targetFlags
	Triggers     string             `help:"YAML or JSON file of triggers, in addition to those made through the API. See docs/triggers.md." placeholder:"FILE"`
	Reminders    string             `help:"YAML or JSON file of reminders: calls at times that items name. See docs/reminders.md." placeholder:"FILE"`
	Bucket       map[string]string  `help:"Where ExportTableToPointInTime writes and ImportTable reads, by the name of the bucket in the request: a directory, or s3://BUCKET. May be repeated." placeholder:"NAME=PLACE"`
	DatabaseOnly bool               `help:"Serve only the database. mayfly worker and mayfly trigger run can run the schedules, triggers and reminders."`
	ReadyFile    string             `help:"File to write when the server listens, as JSON with url, port, storage and pid. It is removed when the server stops." placeholder:"FILE"`
	Transient    time.Duration      `name:"transient-states" help:"Show CREATING, UPDATING and DELETING for this long after a change of a table, as Amazon does. Default: a change is complete at once." default:"0s" placeholder:"500ms"`
	Throttle     bool               `help:"Enforce the throughput of tables and global indexes: provisioned, and the maxima of on-demand tables. A table's tag mayfly:throttle decides for it."`
	Fault        []mayfly.FaultRule `help:"Make calls fail or wait, to test code that retries: OPERATION, then any of table=NAME, every=N or probability=P, error=NAME, delay=TIME. Several rules are separated by commas." placeholder:"RULE"`
	FaultSeed    uint64             `help:"With --fault: seed of the probabilities." default:"0"`
	Separate     bool               `help:"Keep the data of each access key and region apart, as DynamoDB Local does without -sharedDb."`
	Auth         string             `help:"Without credentials: none (nothing about a request's authentication is checked) or form (a request that lacks a part of it gets Amazon's error; any key and signature will do)." enum:"none,form" default:"none"`
	LikeLocal    bool               `help:"Answer GET / with status 400, as DynamoDB Local does: for health checks that wait for it."`
	CatchUp      mayfly.CatchUp     `help:"Which occurrences missed during downtime fire, unless the schedule or its group sets it: last, all or skip." enum:"last,all,skip" default:"last"`
	logFlags
}

func (serveCommand) Help() string {
	return `Examples:

    mayfly serve
    mayfly serve --data ./data --port 8000
    mayfly serve --data ./data --targets targets.yaml --triggers triggers.yaml
    mayfly serve --data ./data --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem --config mayfly.yaml
    mayfly serve --data ./data --keys keys.yaml
    mayfly serve --tls-self-signed ./tls
    mayfly serve --data ./data --bucket exports=/srv/exports
    mayfly serve --throttle --fault 'PutItem table=orders every=3 error=ThrottlingException'
    mayfly serve --memory --port 0 --ready-file ready.json
    mayfly -jar DynamoDBLocal.jar -sharedDb -inMemory -port 8000
    MAYFLY_DATA=./data mayfly serve --config mayfly.yaml
    AWS_ENDPOINT_URL=http://127.0.0.1:8000 aws dynamodb list-tables

Every flag can also be set as MAYFLY_<FLAG> in the environment, and by its name in the file. The command line overrides
the environment, which overrides the file.

A file of --keys; mayfly policy check --keys FILE explains what a key may do:

    keys:
      - user: orders-service
        access-key: ORDERS1
        secret-key-file: /run/secrets/orders
        policies: [table:orders]`
}

// Run serves until ctx is done or the store fails.
func (c serveCommand) Run(ctx context.Context, s streams) error {
	options, err := c.options()
	if err != nil {
		return err
	}
	moreProcessors()
	defer afterStart(int64(c.CacheBytes), c.Data == "").Stop()
	options.Logger = c.logger(s.err)
	if options.Buckets, err = openBuckets(ctx, c.Bucket, options.Logger); err != nil {
		return err
	}
	if err := c.credentials(ctx, &options); err != nil {
		return err
	}
	if err := c.removeReady(); err != nil {
		return err
	}
	listener, url, err := c.listen(c.Host, c.Port, c.notes(s), options.Logger)
	if err != nil {
		return err
	}
	defer listener.Close()
	var shut func() error
	if options.Targets, shut, err = openTargets(ctx, c.Targets, c.logger(s.err), listener.Addr().String()); err != nil {
		return err
	}
	server, err := mayfly.OpenServer(c.Data, options, mayfly.ServerOptions{
		Separate: c.Separate, AuthForm: c.Auth == "form", LikeLocal: c.LikeLocal,
		Opened: func(db *mayfly.DB) (func() error, error) { return runLifecycles(db, options, c.Data == "", s.err) },
	})
	if err != nil {
		return errors.Join(adviseOpen(err, c.Data), shut())
	}
	done, err := c.announce(listener, url, s.out)
	if err != nil {
		return errors.Join(err, closeDB(server), shut())
	}
	return errors.Join(serveHTTP(ctx, server, listener), done(), closeDB(server), shut())
}

// announce prints where the server listens, and writes the file of --ready-file. The function that it
// returns removes the file.
func (c serveCommand) announce(l net.Listener, url string, out io.Writer) (done func() error, err error) {
	ready, done := newReadyLine(l, url, c.Data), func() error { return nil }
	if c.ReadyFile != "" {
		if done, err = ready.write(c.ReadyFile); err != nil {
			return nil, err
		}
	}
	if c.LogFormat == "json" {
		return done, json.NewEncoder(out).Encode(ready)
	}
	fmt.Fprintln(out, c.storageText())
	if c.Expiry == mayfly.ExpiryAWS {
		fmt.Fprintf(out, "--expiry aws: expired items stay visible until removed, after a delay (%s, seed %d)\n", c.ExpiryDelay, c.ExpirySeed)
	}
	fmt.Fprintf(out, "listening on %s\n", url)
	return done, nil
}

// removeReady removes the ready file that a server left when it was killed, before anything can wait
// for this one.
func (c serveCommand) removeReady() error {
	if c.ReadyFile == "" {
		return nil
	}
	if err := os.Remove(c.ReadyFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return misused(fmt.Errorf("--ready-file: %w", err), "name a file in a directory that exists and can be written to")
	}
	return nil
}

// notes returns where sentences for people go: not between the JSON of --log-format json.
func (c serveCommand) notes(s streams) io.Writer {
	if c.LogFormat == "json" {
		return s.err
	}
	return s.out
}

// storageText describes where the data is stored.
func (c serveCommand) storageText() string {
	switch {
	case c.Data != "":
		return "mayfly keeps its data in " + c.Data
	case c.Memory:
		return "mayfly keeps its data in memory"
	}
	return "mayfly keeps its data in memory and loses it when it stops; --data DIR keeps it, --memory silences this line"
}

// options returns the options of the flags. mayfly.Open validates them.
func (c serveCommand) options() (mayfly.Options, error) {
	o := mayfly.Options{
		Durability:      c.Durability,
		Start:           c.Start,
		Frozen:          c.Frozen,
		Expiry:          c.Expiry,
		ExpiryDelay:     c.ExpiryDelay,
		ExpirySeed:      c.ExpirySeed,
		Region:          c.Region,
		Account:         c.Account,
		CORS:            c.CORS,
		AllowHosts:      c.AllowHost,
		Audit:           c.auditFlags.options(),
		MetricsPublic:   c.MetricsPublic,
		StreamRetention: c.Retention,
		TransientStates: c.Transient,
		Throttle:        c.Throttle,
		Faults:          c.Fault,
		FaultSeed:       c.FaultSeed,
		HoldBytes:       int64(c.HoldBytes),
		Shards:          c.Shards,
		ShardBytes:      int64(c.ShardBytes),
		CatchUp:         c.CatchUp,
		DatabaseOnly:    c.DatabaseOnly,
		CacheBytes:      int64(c.CacheBytes),
		BodyBudget:      int64(c.BodyBudget),
		Unmapped:        c.Unmapped,
		Console:         console.New,
	}
	if c.ClockControl != nil {
		o.ClockControl = mayfly.ClockControlOff
		if *c.ClockControl {
			o.ClockControl = mayfly.ClockControlOn
		}
	}
	triggers, err := readDeclared("triggers", c.Triggers, trigger.ReadSpecs)
	if err != nil {
		return o, err
	}
	for _, t := range triggers {
		o.Triggers = append(o.Triggers, mayfly.Trigger(t))
	}
	reminders, err := readDeclared("reminders", c.Reminders, reminder.ReadSpecs)
	if err != nil {
		return o, err
	}
	for _, r := range reminders {
		o.Reminders = append(o.Reminders, mayfly.Reminder(r))
	}
	if c.Data != "" && c.Memory {
		return o, misused(errors.New("--data and --memory cannot be used together"), "")
	}
	if c.Separate && (c.AccessKey != "" || c.Keys != "") {
		return o, misused(errors.New("--separate cannot be used together with access keys of the server"), "with --keys FILE, policies separate the keys: docs/security.md")
	}
	return o, c.keyFlags.check(c.Host, c.InsecureListen || c.TLSClientCA != "")
}

// databases is a *mayfly.DB or a *mayfly.Server.
type databases interface {
	Serve(ctx context.Context, l net.Listener) error
	Failed() <-chan struct{}
	Err() error
	Close() error
}

// serveHTTP answers requests until ctx is done, then finishes those in progress. It returns the
// store's error if the store fails.
func serveHTTP(ctx context.Context, s databases, listener net.Listener) error {
	err := s.Serve(ctx, listener)
	select {
	case <-s.Failed():
		return advise(fmt.Errorf("the store has stopped: %w", s.Err()),
			"check the disk, then start the server again; acknowledged writes are on disk")
	default:
		return err
	}
}

func closeDB(s databases) error {
	if err := s.Close(); err != nil {
		return fmt.Errorf("close the database: %w", err)
	}
	return nil
}

// readDeclared reads a file of triggers or reminders.
func readDeclared[T any](what, path string, read func(io.Reader) ([]T, error)) ([]T, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, misused(fmt.Errorf("--%s: %w", what, err), "")
	}
	defer file.Close()
	all, err := read(file)
	if err != nil {
		return nil, misused(fmt.Errorf("%s file %s: %w", what, path, err), "docs/%s.md describes the file", what)
	}
	return all, nil
}
