package mayfly

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mayflydb/mayfly/internal/front/browser"
	"github.com/mayflydb/mayfly/internal/front/fault"
	"github.com/mayflydb/mayfly/internal/front/intake"
	"github.com/mayflydb/mayfly/internal/front/keys"
	"github.com/mayflydb/mayfly/internal/front/policy"
	"github.com/mayflydb/mayfly/internal/front/sigv4"
	"github.com/mayflydb/mayfly/internal/front/wire"
	"github.com/mayflydb/mayfly/internal/option"
	"github.com/mayflydb/mayfly/internal/store/engine"
	"github.com/mayflydb/mayfly/internal/store/kv"
	"github.com/mayflydb/mayfly/internal/work/reminder"
	"github.com/mayflydb/mayfly/internal/work/resolve"
	"github.com/mayflydb/mayfly/internal/work/trigger"
	"github.com/mayflydb/mayfly/target"
)

// Options configures a database. The zero value is ready to use.
type Options struct {
	// Durability is the kind of failure that an acknowledged write survives. Default: Sync with a
	// directory, Memory without one. A directory cannot be opened with Memory, and a database in
	// memory takes no other value.
	Durability Durability

	// Start is the first instant of a new database; its clock runs on from there. Default: the
	// machine's time. It has no effect on a directory with a database: that one follows the
	// machine's time, and never goes below its own last instant. Range: 1970 to 9999.
	Start time.Time

	// Frozen opens the database with its clock stopped, in a new one at Start to the millisecond.
	// DB.Clock moves it. Default: the clock runs.
	Frozen bool

	// ClockControl lets requests to /_mayfly/clock move the clock. It also allows a directory whose
	// clock is more than a minute ahead of the machine's. Default (ClockControlAuto): on in memory,
	// off for a directory. DB.Clock moves the clock in either case.
	ClockControl ClockControl

	// Expiry is the visibility of an item between its deadline and its removal, in every table
	// without the tag "mayfly:expiry". If it differs from the last time the directory was open,
	// these tables change as if by the tag. Default: ExpiryStrict.
	Expiry Expiry

	// ExpiryDelay is the distribution of the time between an item's deadline and its removal in aws
	// expiry, in every table without the tag "mayfly:expiry-delay". It is "observed", "fixed:10m"
	// or "uniform:8m-30m", with durations from 0s to 8784h in whole milliseconds. Default:
	// "observed": 8 to 30 minutes, 636 s on average. Measurements at Amazon found 8 to 28 minutes
	// (https://bahr.dev/2019/05/29/ddb-ttl-analysis/).
	ExpiryDelay string

	// ExpirySeed selects the delays, in every table without the tag "mayfly:expiry-seed". The same
	// seed and key have the same delay on every machine. Default: 0.
	ExpirySeed uint64

	// Region is the region in ARNs and stream records. Requests for any region are served. Default:
	// "us-east-1".
	Region string

	// Account is the account number in ARNs: twelve digits. Default: "000000000000".
	Account string

	// Credentials are the pairs that requests over HTTP must be signed with. The clients in this
	// process need none. Default: none, so all requests are accepted and no signature is checked.
	Credentials []Credential

	// RenewCredentials, if set, is called before a request over HTTP is answered, at most once a
	// second and by one request at a time. It returns the credentials that replace the present
	// ones, or nil to keep those. If it fails or a credential is invalid, the present ones stay and
	// the reason is logged. It needs Credentials.
	RenewCredentials func() ([]Credential, error)

	// Audit is a log of the requests over HTTP. Default: none.
	Audit Audit

	// MetricsPublic serves /metrics to everyone who can reach the port. Default: with Credentials,
	// metrics need a key, since they show the names of tables.
	MetricsPublic bool

	// CORS lists the origins ("https://app.example", or "*" for all) whose web pages may use the
	// APIs over HTTP. Default: with Credentials all, because their requests need a key; otherwise
	// none, so only pages of the server's own origin may.
	CORS []string

	// Console makes the web pages at /_mayfly/ for browsers: set it to console.New, of package console.
	// It receives the server's handler. The pages ask for an access key if the server has
	// Credentials. An open page keeps a connection: before Shutdown of a server of yours, which waits for
	// all, close the database. Default: no pages.
	Console func(api http.Handler) http.Handler

	// AllowHosts lists the host names ("db.example") under which web pages may call the server,
	// besides IP addresses and localhost. With Credentials and without CORS, they may use any. A browser's request to another name is refused, also for a page
	// of an origin in CORS: any site can make a name of its own resolve to this server (DNS
	// rebinding). Programs may use any name. Default: none.
	AllowHosts []string

	// Targets map the ARNs that schedules, rules and triggers call. DynamoDB's own operations need
	// no mapping. Default: none.
	Targets []target.Mapping

	// Unmapped is the treatment of ARNs without a mapping. Default: in memory, they are accepted
	// and their deliveries recorded; with a directory, they are refused.
	Unmapped Unmapped

	// CatchUp selects the occurrences that run of those missed while the database was closed,
	// unless the schedule or its group sets it. Default: CatchUpLast, as at AWS.
	CatchUp CatchUp

	// Triggers run while the database is open, in addition to those created through Lambda's API of
	// event source mappings. Default: none.
	Triggers []Trigger

	// Reminders are rules that call a target at instants named by items, while the database is
	// open. Default: none.
	Reminders []Reminder

	// TransientStates is the real time for which DescribeTable shows CREATING, UPDATING or DELETING
	// after a change of a table or of a global index, as it does at Amazon. Meanwhile a new table
	// accepts no calls, and further changes of the table are refused. It is for tests of code that
	// waits for a table. Default: 0, so a change is complete when it is answered. Range: up to an hour.
	TransientStates time.Duration

	// Throttle enforces the throughput of tables and global indexes, as Amazon does. A
	// provisioned table can spend the unused units of 300 seconds later; an on-demand table has its
	// maxima. A call beyond it fails with ProvisionedThroughputExceededException
	// or ThrottlingException, and batches return unprocessed items. The tag "mayfly:throttle" (on,
	// off) of a table decides for it. The database's clock counts, so a frozen one adds nothing.
	// Default: throughput is stored and shown only.
	Throttle bool

	// Faults make calls fail or wait, for tests of code that retries. Default: none.
	Faults []FaultRule

	// FaultSeed selects the calls that probabilities of Faults strike. With the same seed and the same
	// order of calls, they are the same. Default: 0.
	FaultSeed uint64

	// DatabaseOnly leaves schedules, triggers and reminders to other processes (mayfly worker,
	// mayfly trigger run). Their APIs are not served, and none of them runs here. Default: false.
	DatabaseOnly bool

	// Buckets are the places that ExportTableToPointInTime may write to and ImportTable may read
	// from, by the names of buckets in requests. A client that may call these operations can write
	// and read there; with Credentials, it also needs permissions of S3. Default: none, so that
	// exports and imports fail with S3NoSuchBucket.
	Buckets map[string]Bucket

	// StreamRetention is the time for which stream records are kept, by the database's clock.
	// Default: 24 hours. Range: one second to a year.
	StreamRetention time.Duration

	// HoldBytes limits the stream records that are kept beyond StreamRetention for a slow consumer
	// in this process, such as the scheduler: in bytes, over all streams. Beyond the limit, new
	// schedules are refused, but no record is dropped. The next limit is the disk: if it is full,
	// writes that grow data are refused. Default: 8 GB. Range: from 1 MB.
	HoldBytes int64

	// Shards is the number of open shards of a table's stream. Default: 4. Range: 1 to 64.
	Shards int

	// ShardBytes is the size in bytes at which a shard is closed and gets a child. Default: 64 MB.
	// Range: 4 KB to 1 TB.
	ShardBytes int64

	// BodyBudget is the memory in bytes for the bodies of requests over HTTP that are being received
	// or processed. Bodies of more than 64 KB wait for room, 5 seconds at most; then the answer is
	// ServiceUnavailable, after which clients retry. Default: 128 MB. Range: from 32 MB.
	BodyBudget int64

	// CacheBytes is the size in bytes of the store's block cache. Default: 64 MB. Range: from 1 MB.
	CacheBytes int64

	// MemTableBytes is the greatest size in bytes of one of the store's two memtables. A log as large
	// lies beside each on disk. Default: 48 MB, and less on a small disk. Range: 1 MB to 1 GB.
	MemTableBytes int64

	// Logger receives messages for an operator. Default: nothing is logged.
	Logger *slog.Logger

	// the file system of the directory; nil: the machine's. Tests pass one that crashes
	fs      kv.FS
	reserve int64 // the most bytes of the reserve in fs; 0: no reserve
	noWork  bool  // leaves the work from before to a test

	server *Server // that the database belongs to, or nil
	first  bool    // it is the server's first
}

// Credential is an access key and its secret, with what it allows.
type Credential struct {
	AccessKey    string // 1 to 128 characters, without "/" or white space
	SecretKey    string // not empty
	SessionToken string // if set, requests must have it in X-Amz-Security-Token

	// User is the name in messages and in the variable ${aws:username} of policies. Default: the
	// access key.
	User string

	// Expires is the instant from which requests are refused. Default: never.
	Expires time.Time

	// Policies are IAM policies in JSON: they say what the key may do. Default: none, so everything
	// is allowed.
	Policies []Policy
}

// Policy is an IAM policy.
type Policy struct {
	Name string // for messages, such as the policy's file
	JSON string
}

// Durability is the kind of failure that an acknowledged write survives.
type Durability int

const (
	// DurabilityDefault is Sync with a directory and Memory without one.
	DurabilityDefault Durability = iota
	// Sync: an acknowledged write is on disk.
	Sync
	// Async: an acknowledged write is in the log, which is synced soon after. A crash of the
	// machine may lose the last moments.
	Async
	// Memory: the database has no files, and Close discards it.
	Memory
)

var durabilityNames = [...]string{"default", "sync", "async", "memory"}

// String returns the name that UnmarshalText accepts.
func (d Durability) String() string {
	if d < 0 || int(d) >= len(durabilityNames) {
		return fmt.Sprintf("Durability(%d)", int(d))
	}
	return durabilityNames[d]
}

// kv returns the store's value for d.
func (d Durability) kv() kv.Durability {
	switch d {
	case Async:
		return kv.Async
	case Memory:
		return kv.Memory
	}
	return kv.Sync
}

// UnmarshalText accepts "default", "sync", "async" or "memory".
func (d *Durability) UnmarshalText(text []byte) error {
	for i, name := range durabilityNames {
		if string(text) == name {
			*d = Durability(i)
			return nil
		}
	}
	return fmt.Errorf("%q is not one of sync, async, memory", text)
}

// Expiry is the visibility of an item between its deadline and its removal.
type Expiry int

const (
	// ExpiryStrict: from its deadline on, no reader sees the item.
	ExpiryStrict Expiry = iota
	// ExpiryAWS: readers see the item until it is removed, some time after its deadline, as at
	// Amazon.
	ExpiryAWS
)

var expiryNames = [...]string{"strict", "aws"}

// String returns the name that UnmarshalText accepts.
func (e Expiry) String() string {
	if e < 0 || int(e) >= len(expiryNames) {
		return fmt.Sprintf("Expiry(%d)", int(e))
	}
	return expiryNames[e]
}

// UnmarshalText accepts "strict" or "aws".
func (e *Expiry) UnmarshalText(text []byte) error {
	for i, name := range expiryNames {
		if string(text) == name {
			*e = Expiry(i)
			return nil
		}
	}
	return fmt.Errorf("%q is neither strict nor aws", text)
}

// expiry returns the engine's setting. The options must be valid.
func (o Options) expiry() engine.Expiry {
	x := engine.Expiry{Seed: o.ExpirySeed}
	if o.Expiry == ExpiryAWS {
		x.Mode = engine.ExpiryAWS
	}
	x.Delay, _ = engine.ParseDelay(o.ExpiryDelay)
	return x
}

// ClockControl allows or forbids moving the clock over HTTP.
type ClockControl int

const (
	ClockControlAuto ClockControl = iota // on in memory, off for a directory
	ClockControlOn
	ClockControlOff
)

// Unmapped is the treatment of ARNs that no mapping in Options.Targets fits.
type Unmapped int

const (
	// UnmappedDefault is UnmappedAccept in memory and UnmappedRefuse with a directory.
	UnmappedDefault Unmapped = iota
	// UnmappedAccept: each delivery becomes an item of the table "mayfly.recorded", for a day. Beyond
	// 10,000 of them or 64 MB in a day, they stay for a minute.
	UnmappedAccept
	// UnmappedRefuse: schedules, rules and triggers with such an ARN are refused, with advice.
	// Deliveries of those accepted earlier become dead letters.
	UnmappedRefuse
)

var unmappedNames = [...]string{"default", "accept", "refuse"}

// String returns the name that UnmarshalText accepts.
func (u Unmapped) String() string {
	if u < 0 || int(u) >= len(unmappedNames) {
		return fmt.Sprintf("Unmapped(%d)", int(u))
	}
	return unmappedNames[u]
}

// UnmarshalText accepts "default", "accept" or "refuse".
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

// withDefaults returns a copy with all defaults filled in.
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
	o.CatchUp = cmp.Or(o.CatchUp, CatchUpLast)
	o.Region = cmp.Or(o.Region, regionDefault)
	o.Account = cmp.Or(o.Account, accountDefault)
	o.ExpiryDelay = cmp.Or(o.ExpiryDelay, expiryDelayDefault)
	o.StreamRetention = cmp.Or(o.StreamRetention, streamRetentionDefault)
	o.HoldBytes = cmp.Or(o.HoldBytes, holdBytesDefault)
	o.Shards = cmp.Or(o.Shards, shardsDefault)
	o.ShardBytes = cmp.Or(o.ShardBytes, shardBytesDefault)
	o.BodyBudget = cmp.Or(o.BodyBudget, intake.DefaultBudget)
	o.CacheBytes = cmp.Or(o.CacheBytes, cacheBytesDefault)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// pages returns the rules for web pages.
func (o Options) pages() browser.Rules {
	return browser.Rules{Hosts: o.AllowHosts, Origins: o.CORS}
}

// ring returns the keys of validated options, or nil without credentials.
func (o Options) ring() (*keys.Ring, error) {
	if len(o.Credentials) == 0 {
		return nil, nil
	}
	var renew func() ([]keys.Spec, error)
	if o.RenewCredentials != nil {
		renew = func() ([]keys.Spec, error) {
			credentials, err := o.RenewCredentials()
			if err != nil || credentials == nil {
				return nil, err
			}
			var all option.Complaints
			checkCredentials(&all, credentials)
			return keySpecs(credentials), all.Err("renew the credentials")
		}
	}
	return keys.New(keySpecs(o.Credentials), renew, func(err error) {
		o.Logger.Error("the access keys cannot be renewed; the previous ones stay in use", "error", err)
	})
}

// keySpecs returns the descriptions of credentials. They are not nil.
func keySpecs(credentials []Credential) []keys.Spec {
	specs := make([]keys.Spec, len(credentials))
	for i, c := range credentials {
		specs[i] = keys.Spec{
			Credential: sigv4.Credential{AccessKey: c.AccessKey, SecretKey: c.SecretKey, SessionToken: c.SessionToken},
			User:       c.User, Expires: c.Expires,
		}
		for _, p := range c.Policies {
			specs[i].Policies = append(specs[i].Policies, keys.Policy{Name: p.Name, Text: p.JSON})
		}
	}
	return specs
}

// checkCredentials collects the faults of credentials.
func checkCredentials(all *option.Complaints, credentials []Credential) {
	for i, c := range credentials {
		name := fmt.Sprintf("Credentials[%d]", i)
		all.AddIf(!isAccessKey(c.AccessKey), name, `an access key has 1 to 128 characters, without "/" or white space`)
		all.AddIf(c.SecretKey == "", name, "the secret key is empty")
		for _, p := range c.Policies {
			_, err := policy.Parse([]byte(p.JSON))
			all.AddIf(err != nil, name, "policy %s: %v", p.Name, err)
		}
	}
}

// Characters of options. The checks below are not regular expressions: every program that imports
// the package would compile those at its start, and a count of 128 makes 128 copies of a class.
const (
	digits = "0123456789"
	spaces = " \t\n\f\r"
)

// isRegion reports whether s is 1 to 32 lower-case letters, digits and "-".
func isRegion(s string) bool {
	return s != "" && len(s) <= 32 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz-"+digits) == ""
}

// isAccount reports whether s is twelve digits.
func isAccount(s string) bool { return len(s) == 12 && strings.Trim(s, digits) == "" }

// isAccessKey reports whether s has 1 to 128 characters, without "/" and white space.
func isAccessKey(s string) bool {
	return s != "" && utf8.RuneCountInString(s) <= 128 && !strings.ContainsAny(s, "/"+spaces)
}

// validate returns all errors of filled-in options, joined.
func (o Options) validate(dir string) error {
	var all option.Complaints
	all.AddIf(o.Durability < Sync || o.Durability > Memory, "Durability", "unknown value %d", int(o.Durability))
	all.AddIf(dir != "" && o.Durability == Memory, "Durability", "memory keeps no files, but a directory is given: %q", dir)
	all.AddIf(dir == "" && o.Durability < Memory, "Durability", "%s needs a directory", o.Durability)
	all.AddIf(!o.Start.IsZero() && (o.Start.Year() < 1970 || o.Start.Year() > 9999), "Start", "%s is not between the years 1970 and 9999", o.Start)
	all.AddIf(o.ClockControl < ClockControlAuto || o.ClockControl > ClockControlOff, "ClockControl", "unknown value %d", int(o.ClockControl))
	all.AddIf(o.Expiry < ExpiryStrict || o.Expiry > ExpiryAWS, "Expiry", "unknown value %d", int(o.Expiry))
	_, err := engine.ParseDelay(o.ExpiryDelay)
	all.AddIf(err != nil, "ExpiryDelay", "%v", err)
	all.AddIf(!isRegion(o.Region), "Region", "%q is not a region name", o.Region)
	all.AddIf(!isAccount(o.Account), "Account", "%q is not twelve digits", o.Account)
	checkCredentials(&all, o.Credentials)
	_, known := auditKeys[o.Audit.Keys]
	all.AddIf(!known, "Audit.Keys", "%q is not one of none, plain, hashed", o.Audit.Keys)
	all.AddIf(o.Audit.Secret != "" && len(o.Audit.Secret) < 16, "Audit.Secret", "%d bytes can be guessed; use 16 or more", len(o.Audit.Secret))
	all.AddIf(o.Audit.MaxBytes != 0 && o.Audit.MaxBytes < 64<<10, "Audit.MaxBytes", "%d is below 64 KB", o.Audit.MaxBytes)
	all.AddIf(o.Audit.Keep < 0 || o.Audit.Keep > 1000, "Audit.Keep", "%d is not between 1 and 1000", o.Audit.Keep)
	all.AddIf(o.RenewCredentials != nil && len(o.Credentials) == 0, "RenewCredentials", "needs Credentials")
	for i, origin := range o.CORS {
		err := browser.CheckOrigin(origin)
		all.AddIf(err != nil, fmt.Sprintf("CORS[%d]", i), "%v", err)
	}
	for i, name := range o.AllowHosts {
		err := browser.CheckHost(name)
		all.AddIf(err != nil, fmt.Sprintf("AllowHosts[%d]", i), "%v", err)
	}
	checkBuckets(&all, o.Buckets)
	checkFaultRules(&all, o.Faults)
	all.AddIf(o.Unmapped < UnmappedDefault || o.Unmapped > UnmappedRefuse, "Unmapped", "unknown value %d", int(o.Unmapped))
	all.AddIf(o.CatchUp != CatchUpLast && o.CatchUp != CatchUpAll && o.CatchUp != CatchUpSkip, "CatchUp", "%q is not one of last, all, skip", o.CatchUp)
	for _, err := range resolve.Check(o.Targets) {
		all.Join(err)
	}
	err = trigger.CheckSpecs(o.triggers())
	all.AddIf(err != nil, "Triggers", "%v", err)
	err = reminder.CheckSpecs(o.reminders())
	all.AddIf(err != nil, "Reminders", "%v", err)
	all.AddIf(o.DatabaseOnly && len(o.Triggers)+len(o.Reminders)+len(o.Targets) > 0, "DatabaseOnly", "cannot be used with targets, triggers or reminders")
	all.AddIf(o.StreamRetention < time.Second || o.StreamRetention > 366*24*time.Hour, "StreamRetention", "%s is not between 1s and a year", o.StreamRetention)
	all.AddIf(o.TransientStates < 0 || o.TransientStates > time.Hour, "TransientStates", "%s is not between 0s and 1h", o.TransientStates)
	all.AddIf(o.HoldBytes < 1<<20, "HoldBytes", "%d is less than 1 MB", o.HoldBytes)
	all.AddIf(o.Shards < 1 || o.Shards > 64, "Shards", "%d is not between 1 and 64", o.Shards)
	all.AddIf(o.ShardBytes < 4<<10 || o.ShardBytes > 1<<40, "ShardBytes", "%d is not between 4 KB and 1 TB", o.ShardBytes)
	all.AddIf(o.BodyBudget < intake.LeastBudget, "BodyBudget", "%d is less than 32 MB", o.BodyBudget)
	all.AddIf(o.CacheBytes < 1<<20, "CacheBytes", "%d is less than 1 MB", o.CacheBytes)
	all.AddIf(o.MemTableBytes != 0 && (o.MemTableBytes < 1<<20 || o.MemTableBytes > 1<<30), "MemTableBytes", "%d is not between 1 MB and 1 GB", o.MemTableBytes)
	return all.Err("mayfly: ")
}

func checkFaultRules(all *option.Complaints, faults []FaultRule) {
	for i, f := range faults {
		name := fmt.Sprintf("Faults[%d]", i)
		err := fault.Rule(f).Check()
		all.AddIf(err != nil, name, "%v", err)
		all.AddIf(f.Operation != "" && f.Operation != "*" && !wire.HasOperation(f.Operation), name, "there is no operation %q", f.Operation)
	}
}

// console returns the pages for browsers; nil without Console.
func (o Options) console(api http.Handler) http.Handler {
	if o.Console == nil {
		return nil
	}
	return o.Console(api)
}
