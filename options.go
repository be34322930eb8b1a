package mayfly

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/mayflydb/mayfly/internal/front/sigv4"
	"github.com/mayflydb/mayfly/internal/store/engine"
	"github.com/mayflydb/mayfly/internal/store/kv"
	"github.com/mayflydb/mayfly/internal/work/reminder"
	"github.com/mayflydb/mayfly/internal/work/resolve"
	"github.com/mayflydb/mayfly/internal/work/trigger"
	"github.com/mayflydb/mayfly/target"
)

// Options says how to open a database. The zero value is ready to use.
type Options struct {
	// Durability says what an acknowledged write has survived. Default: Sync with a directory, Memory without one.
	// A directory cannot be opened with Memory, nor a database in memory with anything else.
	Durability Durability

	// Start is the first instant of a new database: its clock runs on from there. Default: the machine's time. It means nothing
	// for a directory that holds a database already: that goes by the machine's time, and never below its own last instant. Range: from
	// 1970 to 9999.
	Start time.Time

	// Frozen opens the database with its clock standing still, where it first stands: at Start to the millisecond in a new one. DB.Clock moves it. Default: it runs.
	Frozen bool

	// ClockControl lets requests to /_mayfly/clock move the clock, and lets a directory be opened whose clock is more than a minute
	// ahead of the machine's. Default (ClockControlAuto): on in memory, off for a directory. DB.Clock moves it in either case.
	ClockControl ClockControl

	// Expiry says what becomes of an item between its deadline and its removal, in every table that has no tag "mayfly:expiry" for it.
	// Default: ExpiryStrict. Where it is not what it was when the directory was last open, such tables change, as with a change of the tag.
	Expiry Expiry

	// ExpiryDelay is the distribution from which aws expiry draws how long after its deadline an item is removed, in every table that has no
	// tag "mayfly:expiry-delay": "observed", "fixed:10m" or "uniform:8m-30m", with durations of your own from 0s to 8784h in whole
	// milliseconds. Default: "observed", which is 8 to 30 minutes, 636 s on average. Measurements at Amazon found 8 to 28 minutes
	// (https://bahr.dev/2019/05/29/ddb-ttl-analysis/).
	ExpiryDelay string

	// ExpirySeed makes other draws, in every table that has no tag "mayfly:expiry-seed". The same seed and key give the same delay, on every
	// machine. Default: 0.
	ExpirySeed uint64

	// Region is what ARNs and stream records name. Requests for any region are served. Default: "us-east-1".
	Region string

	// Account is the account number that ARNs name: twelve digits. Default: "000000000000".
	Account string

	// Credentials are the pairs that requests over HTTP must be signed with. Default: none, then any credentials are accepted and
	// signatures are not checked. The clients of DynamoDB and Streams need none.
	Credentials []Credential

	// CORS lists the origins ("https://app.example", or "*" for all) whose web pages may use the API. Default: none.
	CORS []string

	// Targets say where deliveries go: what schedules, rules and triggers call, by ARN. DynamoDB's own operations need no mapping. Default: none.
	Targets []target.Mapping

	// Unmapped says what becomes of a schedule whose target has no mapping. Default: it is accepted in memory, and what it delivers is recorded;
	// with a directory it is refused.
	Unmapped Unmapped

	// CatchUp says what runs of the occurrences of schedules and rules that were missed while the database was closed, where neither a schedule nor its
	// group says it. Default: CatchUpLast, as with AWS.
	CatchUp CatchUp

	// Triggers run as long as the database is open, besides those that are made through the API of Lambda's event source mappings. Default: none.
	Triggers []Trigger

	// Reminders are rules that call a target at instants that items name. They are followed as long as the database is open. Default: none.
	Reminders []Reminder

	// DatabaseOnly leaves schedules, triggers and reminders to other processes (mayfly worker, mayfly trigger run): their APIs are not served, and nothing of theirs
	// runs here. Default: false.
	DatabaseOnly bool

	// StreamRetention is how long stream records are kept, by the database's clock. Default: 24 hours. Range: one second to a year.
	StreamRetention time.Duration

	// HoldBytes is how much of stream records may be kept beyond StreamRetention because a consumer in this process, such as the scheduler, has
	// not got to them: in bytes, over all streams. Once there is more, new schedules are refused; nothing is dropped, however much more it becomes. The next
	// bound is the disk: once that is full, writes that grow data are refused. Default: 8 GB. Range: 1 MB and more.
	HoldBytes int64

	// Shards is how many open shards the stream of a table has. Default: 4. Range: 1 to 64.
	Shards int

	// ShardBytes is the size in bytes at which a shard is closed and gets a child. Default: 64 MB. Range: 4 KB to 1 TB.
	ShardBytes int64

	// CacheBytes is the size in bytes of the store's block cache. Default: 64 MB. Range: 1 MB and more.
	CacheBytes int64

	// Logger receives what an operator has to know. Default: nothing is logged.
	Logger *slog.Logger

	fs      kv.FS // the file system of the directory; nil: the machine's. Tests pass one that crashes.
	reserve int64 // the most bytes of the reserve in fs; 0: there is none
	noWork  bool  // what is left from before is not gone on with: a test does that itself
}

// Credential is an access key and its secret.
type Credential struct {
	AccessKey string // 1 to 128 characters, without "/" or white space
	SecretKey string // not empty
}

// Durability says what an acknowledged write has survived.
type Durability int

const (
	// DurabilityDefault is Sync with a directory and Memory without one.
	DurabilityDefault Durability = iota
	// Sync: acknowledged means on disk.
	Sync
	// Async: written to the log, which is synced soon after; a crash of the machine may take the last moments back.
	Async
	// Memory: no files; gone when the database is closed.
	Memory
)

var durabilityNames = [...]string{"default", "sync", "async", "memory"}

// String is the name that UnmarshalText takes.
func (d Durability) String() string {
	if d < 0 || int(d) >= len(durabilityNames) {
		return fmt.Sprintf("Durability(%d)", int(d))
	}
	return durabilityNames[d]
}

// kv is the same in the store's words.
func (d Durability) kv() kv.Durability {
	switch d {
	case Async:
		return kv.Async
	case Memory:
		return kv.Memory
	}
	return kv.Sync
}

// UnmarshalText takes "default", "sync", "async" or "memory".
func (d *Durability) UnmarshalText(text []byte) error {
	for i, name := range durabilityNames {
		if string(text) == name {
			*d = Durability(i)
			return nil
		}
	}
	return fmt.Errorf("%q is not one of sync, async, memory", text)
}

// Expiry says what becomes of an item between its deadline and its removal.
type Expiry int

const (
	// ExpiryStrict: it does not exist from its deadline on, for anyone.
	ExpiryStrict Expiry = iota
	// ExpiryAWS: it is an item like others until it is removed some time after its deadline, as with Amazon.
	ExpiryAWS
)

var expiryNames = [...]string{"strict", "aws"}

// String is the name that UnmarshalText takes.
func (e Expiry) String() string {
	if e < 0 || int(e) >= len(expiryNames) {
		return fmt.Sprintf("Expiry(%d)", int(e))
	}
	return expiryNames[e]
}

// UnmarshalText takes "strict" or "aws".
func (e *Expiry) UnmarshalText(text []byte) error {
	for i, name := range expiryNames {
		if string(text) == name {
			*e = Expiry(i)
			return nil
		}
	}
	return fmt.Errorf("%q is neither strict nor aws", text)
}

// expiry is the same, with what belongs to it, in the engine's words. It is called once the options are validated.
func (o Options) expiry() engine.Expiry {
	x := engine.Expiry{Seed: o.ExpirySeed}
	if o.Expiry == ExpiryAWS {
		x.Mode = engine.ExpiryAWS
	}
	x.Delay, _ = engine.ParseDelay(o.ExpiryDelay)
	return x
}

// ClockControl says whether the clock can be moved over the wire.
type ClockControl int

const (
	ClockControlAuto ClockControl = iota // on in memory, off for a directory
	ClockControlOn
	ClockControlOff
)

// Unmapped says what becomes of what is to go to an ARN that has no mapping among the targets.
type Unmapped int

const (
	// UnmappedDefault is UnmappedAccept in memory and UnmappedRefuse with a directory.
	UnmappedDefault Unmapped = iota
	// UnmappedAccept: what is delivered there becomes an item of the table "mayfly.recorded", for a day, in which it can be looked at.
	UnmappedAccept
	// UnmappedRefuse: schedules, rules and triggers that name it are refused, with advice. What was accepted before becomes a dead letter.
	UnmappedRefuse
)

var unmappedNames = [...]string{"default", "accept", "refuse"}

// String is the name that UnmarshalText takes.
func (u Unmapped) String() string {
	if u < 0 || int(u) >= len(unmappedNames) {
		return fmt.Sprintf("Unmapped(%d)", int(u))
	}
	return unmappedNames[u]
}

// UnmarshalText takes "default", "accept" or "refuse".
func (u *Unmapped) UnmarshalText(text []byte) error {
	for i, name := range unmappedNames {
		if string(text) == name {
			*u = Unmapped(i)
			return nil
		}
	}
	return fmt.Errorf("%q is neither accept nor refuse", text)
}

const (
	regionDefault          = "us-east-1"
	accountDefault         = "000000000000"
	expiryDelayDefault     = "observed"
	streamRetentionDefault = 24 * time.Hour
	holdBytesDefault       = 8 << 30
	shardsDefault          = 4
	shardBytesDefault      = 64 << 20
	cacheBytesDefault      = 64 << 20
)

// withDefaults is a copy in which nothing is left open.
func (o Options) withDefaults(dir string) Options {
	if o.Durability == DurabilityDefault {
		o.Durability = Sync
		if dir == "" {
			o.Durability = Memory
		}
	}
	if o.ClockControl == ClockControlAuto {
		o.ClockControl = ClockControlOff
		if dir == "" {
			o.ClockControl = ClockControlOn
		}
	}
	if o.Unmapped == UnmappedDefault {
		o.Unmapped = UnmappedRefuse
		if dir == "" {
			o.Unmapped = UnmappedAccept
		}
	}
	orDefault(&o.CatchUp, CatchUpLast)
	orDefault(&o.Region, regionDefault)
	orDefault(&o.Account, accountDefault)
	orDefault(&o.ExpiryDelay, expiryDelayDefault)
	orDefault(&o.StreamRetention, streamRetentionDefault)
	orDefault(&o.HoldBytes, holdBytesDefault)
	orDefault(&o.Shards, shardsDefault)
	orDefault(&o.ShardBytes, shardBytesDefault)
	orDefault(&o.CacheBytes, cacheBytesDefault)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// verifier checks signatures against the credentials; nil when there are none.
func (o Options) verifier() *sigv4.Verifier {
	if len(o.Credentials) == 0 {
		return nil
	}
	credentials := make([]sigv4.Credential, len(o.Credentials))
	for i, c := range o.Credentials {
		credentials[i] = sigv4.Credential{AccessKey: c.AccessKey, SecretKey: c.SecretKey}
	}
	return sigv4.NewVerifier(credentials...)
}

var (
	regionForm  = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)
	accountForm = regexp.MustCompile(`^[0-9]{12}$`)
	keyForm     = regexp.MustCompile(`^[^/\s]{1,128}$`)
	originForm  = regexp.MustCompile(`^(\*|https?://[^/\s]+)$`)
)

// validate reports everything that is wrong with filled-in options, together.
func (o Options) validate(dir string) error {
	var all []error
	complain := func(bad bool, format string, args ...any) {
		if bad {
			all = append(all, fmt.Errorf("mayfly: "+format, args...))
		}
	}
	complain(o.Durability < Sync || o.Durability > Memory, "Durability: unknown value %d", int(o.Durability))
	complain(dir != "" && o.Durability == Memory, "Durability: memory keeps no files, but a directory is given: %q", dir)
	complain(dir == "" && o.Durability < Memory, "Durability: %s needs a directory", o.Durability)
	complain(!o.Start.IsZero() && (o.Start.Year() < 1970 || o.Start.Year() > 9999), "Start: %s is not between the years 1970 and 9999", o.Start)
	complain(o.ClockControl < ClockControlAuto || o.ClockControl > ClockControlOff, "ClockControl: unknown value %d", int(o.ClockControl))
	complain(o.Expiry < ExpiryStrict || o.Expiry > ExpiryAWS, "Expiry: unknown value %d", int(o.Expiry))
	_, err := engine.ParseDelay(o.ExpiryDelay)
	complain(err != nil, "ExpiryDelay: %v", err)
	complain(!regionForm.MatchString(o.Region), "Region: %q is not a region name", o.Region)
	complain(!accountForm.MatchString(o.Account), "Account: %q is not twelve digits", o.Account)
	for i, c := range o.Credentials {
		complain(!keyForm.MatchString(c.AccessKey), `Credentials[%d]: an access key has 1 to 128 characters, without "/" or white space`, i)
		complain(c.SecretKey == "", "Credentials[%d]: the secret key is empty", i)
	}
	for i, origin := range o.CORS {
		complain(!originForm.MatchString(origin), `CORS[%d]: %q is neither "*" nor an origin such as "https://app.example"`, i, origin)
	}
	complain(o.Unmapped < UnmappedDefault || o.Unmapped > UnmappedRefuse, "Unmapped: unknown value %d", int(o.Unmapped))
	complain(o.CatchUp != CatchUpLast && o.CatchUp != CatchUpAll && o.CatchUp != CatchUpSkip, "CatchUp: %q is not one of last, all, skip", o.CatchUp)
	for _, err := range resolve.Check(o.Targets) {
		complain(true, "%v", err)
	}
	err = trigger.CheckSpecs(o.triggers())
	complain(err != nil, "Triggers: %v", err)
	err = reminder.CheckSpecs(o.reminders())
	complain(err != nil, "Reminders: %v", err)
	complain(o.DatabaseOnly && len(o.Triggers)+len(o.Reminders)+len(o.Targets) > 0, "DatabaseOnly: cannot be used with targets, triggers or reminders")
	complain(o.StreamRetention < time.Second || o.StreamRetention > 366*24*time.Hour, "StreamRetention: %s is not between 1s and a year", o.StreamRetention)
	complain(o.HoldBytes < 1<<20, "HoldBytes: %d is less than 1 MB", o.HoldBytes)
	complain(o.Shards < 1 || o.Shards > 64, "Shards: %d is not between 1 and 64", o.Shards)
	complain(o.ShardBytes < 4<<10 || o.ShardBytes > 1<<40, "ShardBytes: %d is not between 4 KB and 1 TB", o.ShardBytes)
	complain(o.CacheBytes < 1<<20, "CacheBytes: %d is less than 1 MB", o.CacheBytes)
	return errors.Join(all...)
}
