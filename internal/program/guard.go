package program

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/mayflydb/mayfly/guard"
)

// guardCommand removes expired items from tables of any endpoint.
type guardCommand struct {
	Run    guardRunCommand    `cmd:"" default:"withargs" help:"Remove expired items on time. \"mayfly guard\" alone means this."`
	Init   guardInitCommand   `cmd:"" help:"Create the index for the index strategy and fill it."`
	Status guardStatusCommand `cmd:"" help:"Show workers, leases, overdue items and coming expiries."`
	Undo   guardUndoCommand   `cmd:"" help:"Put back items that guard has removed by mistake."`
	Policy guardPolicyCommand `cmd:"" help:"Print the IAM policy that a guard command needs."`
	Proxy  guardProxyCommand  `cmd:"" help:"Run a proxy that hides expired items from clients until they are removed."`

	Simulate guardSimulateCommand `cmd:"" help:"Simulate a fleet of guards at a size and rate, and compare it with the plan."`
}

func (guardCommand) Help() string {
	return `Examples:

    mayfly guard --endpoint aws --table orders
    mayfly guard --endpoint http://127.0.0.1:8000 --table orders --attribute expires_at --strategy scan --max-rcu 200

It removes expired items on time from tables at any endpoint with the DynamoDB API: docs/guard.md.
mayfly guard run --help shows the flags.`
}

// endpointClockFlag sets the clock that decides on deadlines.
type endpointClockFlag struct {
	EndpointClock string `help:"Where to learn the endpoint's time: date is the Date headers of its answers; local is this machine's clock, for endpoints without such headers." enum:"date,local" default:"date"`
}

func (f endpointClockFlag) localClock() bool { return f.EndpointClock == "local" }

// leasesFlag names the table of leases.
type leasesFlag struct {
	LeasesTable string `help:"Table of the workers' leases and reports, at the endpoint. All commands about one table need the same." default:"mayfly.leases" placeholder:"NAME"`
}

// deadlinesTableFlag names the table of deadlines.
type deadlinesTableFlag struct {
	DeadlinesTable string `help:"Table of the stream strategy's deadlines, at the endpoint." default:"mayfly.deadlines" placeholder:"NAME"`
}

// ownTableFlags are the settings of guard's own tables when they are created.
type ownTableFlags struct {
	OwnTableTags    string `help:"Tags of the tables of leases and deadlines when guard creates them." placeholder:"KEY=VALUE,…"`
	OwnTableKMSKey  string `name:"own-table-kms-key" help:"KMS key that encrypts these tables: id, alias or ARN. Default: DynamoDB's own key." placeholder:"KEY"`
	OwnTableBilling string `help:"Billing of each of these tables: on-demand, or provisioned read and write units, such as 5,10." default:"on-demand" placeholder:"BILLING"`
}

// billingOnDemand is the default of --own-table-billing.
const billingOnDemand = "on-demand"

// tables returns guard's own tables with these names.
func (f ownTableFlags) tables(leases, deadlines string) (guard.Tables, error) {
	t := guard.Tables{Leases: leases, Deadlines: deadlines, KMSKey: f.OwnTableKMSKey}
	if f.OwnTableTags != "" {
		t.Tags = map[string]string{}
		for pair := range strings.SplitSeq(f.OwnTableTags, ",") {
			key, value, ok := strings.Cut(pair, "=")
			if _, twice := t.Tags[key]; !ok || twice {
				return t, misused(fmt.Errorf("--own-table-tags: %q is not a KEY=VALUE with a key of its own", pair), "for example --own-table-tags team=orders,env=prod")
			}
			t.Tags[key] = value
		}
	}
	if f.OwnTableBilling == billingOnDemand {
		return t, nil
	}
	read, write, _ := strings.Cut(f.OwnTableBilling, ",")
	var err, other error
	t.ReadUnits, err = strconv.ParseInt(read, 10, 64)
	t.WriteUnits, other = strconv.ParseInt(write, 10, 64)
	if err != nil || other != nil || t.ReadUnits < 1 || t.WriteUnits < 1 {
		return t, misused(fmt.Errorf("--own-table-billing %s is neither on-demand nor two numbers of units", f.OwnTableBilling), "for example --own-table-billing 5,10")
	}
	return t, nil
}

// optionFlags maps the guard's and the server's options to flags that have other names.
var optionFlags = map[string]string{"DB": "endpoint", "Credentials": "access-key", "IndexName": "index", "Role": "scheduler-role", "DeadLetters": "scheduler-queue", "Version": "version-attribute", "LocalClock": "endpoint-clock", "AllowHosts": "allow-host", "To": "until",
	"Tables.Leases": "leases-table", "Tables.Deadlines": "deadlines-table", "Tables.Tags": "own-table-tags", "Tables.KMSKey": "own-table-kms-key", "Tables.ReadUnits": "own-table-billing", "Tables.WriteUnits": "own-table-billing",
}

// optionFlag returns the flag that sets an option: --max-wcu for MaxWCU, --access-key for Credentials[2].
func optionFlag(name string) string {
	name, _, _ = strings.Cut(name, "[")
	if flag := optionFlags[name]; flag != "" {
		return "--" + flag
	}
	var b strings.Builder
	for i, letter := range name {
		if unicode.IsUpper(letter) && i > 0 && unicode.IsLower(rune(name[i-1])) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(letter))
	}
	return "--" + b.String()
}

// Exit codes of mayfly guard. They show whether a restart can help.
const (
	exitTable       = 3 // the table, its stream, its index, its TTL attribute
	exitForbidden   = 4 // credentials or permissions
	exitClock       = 5 // the endpoint's clock
	exitUnavailable = 6 // no answer from the endpoint; a later attempt may work
	exitLimit       = 7 // a limit of removals, or overdue items that somebody has to accept
)

var guardExits = map[guard.Code]int{
	guard.AccessDenied: exitForbidden, guard.Credentials: exitForbidden,
	guard.Skew: exitClock, guard.NoDate: exitClock,
	guard.Unavailable: exitUnavailable,
	guard.ManyOverdue: exitLimit, guard.Limit: exitLimit,
	guard.NoJournal: exitError,
}

// adviseCredentials returns the error with the exit code for missing credentials, if it is one.
func adviseCredentials(err error) error {
	var a *advised
	if errors.Is(err, errNoCredentials) && errors.As(err, &a) {
		return &advised{error: a.error, next: a.next, exit: exitForbidden}
	}
	return err
}

// adviseGuard returns a readable form of package guard's error, with the next step and the exit
// code.
func (e *endpoint) adviseGuard(err error) error {
	var p *guard.Problem
	if !errors.As(err, &p) {
		return e.advise(err)
	}
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted")
	}
	code, known := guardExits[p.Code]
	if !known {
		code = exitTable
	}
	message := *p
	message.Message = strings.Replace(p.Message, "not found at the endpoint", "not found at "+e.name(), 1)
	return &advised{error: &guardError{&message}, next: p.Next, exit: code}
}

// guardError is a problem whose message leaves out the next step.
type guardError struct{ problem *guard.Problem }

func (g *guardError) Error() string {
	if g.problem.Err == nil {
		return g.problem.Message
	}
	if found := (*guard.Overdue)(nil); errors.As(g.problem.Err, &found) {
		return g.problem.Message + examplesOf(found)
	}
	if errors.Is(g.problem.Err, context.DeadlineExceeded) {
		return g.problem.Message + " in time"
	}
	return g.problem.Message + ": " + reasonOf(g.problem.Err).Error()
}

func (g *guardError) Unwrap() error { return g.problem }
