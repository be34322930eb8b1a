package program

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/guard"
	"github.com/mayflydb/mayfly/internal/front/keyfile"
	"github.com/mayflydb/mayfly/internal/front/keys"
	"github.com/mayflydb/mayfly/internal/front/policy"
	"github.com/mayflydb/mayfly/internal/front/sigv4"
)

// keyFlags are the keys of a server that knows policies: a file of keys, and one more that may do
// everything.
type keyFlags struct {
	accessFlags
	Keys string `help:"YAML or JSON file of access keys and their policies, read again when it changes. Default: no such keys. See docs/security.md." placeholder:"FILE"`

	MetricsPublic bool `help:"Serve /metrics without a key. Without keys it is always open."`
}

// check returns an error for half of a key, or for no keys on a host that others can reach.
func (f keyFlags) check(host string, insecure bool) error {
	if err := f.accessFlags.checkPair(); err != nil {
		return err
	}
	return checkExposure(host, f.AccessKey != "" || f.Keys != "", insecure, "--access-key and --secret-key, or --keys")
}

// watch reads the file of keys. It returns nil without one.
func (f keyFlags) watch(ctx context.Context, log *slog.Logger) (*keyfile.File, error) {
	if f.Keys == "" {
		return nil, nil
	}
	o := keyFileOptions(log)
	if f.AccessKey != "" {
		o.Besides = []sigv4.Credential{{AccessKey: f.AccessKey, SecretKey: f.SecretKey}}
	}
	file, err := keyfile.Watch(ctx, f.Keys, o)
	if err != nil {
		return nil, misusedKeyFile(err)
	}
	return file, nil
}

func misusedKeyFile(err error) error {
	return misused(err, "docs/security.md explains each setting")
}

func keyFileOptions(log *slog.Logger) keyfile.Options {
	return keyfile.Options{Guard: guardKeyPolicy, Env: os.LookupEnv, Now: time.Now, Logger: log}
}

// ring returns the keys that the flags set, or nil.
func (f keyFlags) ring(ctx context.Context, log *slog.Logger) (*keys.Ring, error) {
	file, err := f.watch(ctx, log)
	switch {
	case err != nil:
		return nil, err
	case file != nil:
		return keys.New(file.Specs(), func() ([]keys.Spec, error) { return file.Renew(ctx) }, func(err error) {
			log.Error("the access keys cannot be renewed; the previous ones stay in use", "error", err)
		})
	case f.AccessKey != "":
		return keys.Fixed(sigv4.Credential{AccessKey: f.AccessKey, SecretKey: f.SecretKey}), nil
	}
	return nil, nil
}

// credentials sets the keys of a database.
func (f keyFlags) credentials(ctx context.Context, o *mayfly.Options) error {
	file, err := f.watch(ctx, o.Logger)
	switch {
	case err != nil:
		return err
	case file != nil:
		o.Credentials = credentialsOf(file.Specs())
		o.RenewCredentials = func() ([]mayfly.Credential, error) {
			specs, err := file.Renew(ctx)
			return credentialsOf(specs), err
		}
	case f.AccessKey != "":
		o.Credentials = []mayfly.Credential{{AccessKey: f.AccessKey, SecretKey: f.SecretKey}}
	}
	return nil
}

// credentialsOf returns keys in the library's form, or nil for nil.
func credentialsOf(specs []keys.Spec) (all []mayfly.Credential) {
	for _, k := range specs {
		c := mayfly.Credential{AccessKey: k.AccessKey, SecretKey: k.SecretKey, SessionToken: k.SessionToken, User: k.User, Expires: k.Expires}
		for _, p := range k.Policies {
			c.Policies = append(c.Policies, mayfly.Policy{Name: p.Name, JSON: p.Text})
		}
		all = append(all, c)
	}
	return all
}

// guardKeyPolicy returns the policy for mayfly guard run with the stream strategy and its default
// flags. Of other services it grants nothing: a server of ours has none that guard needs.
func guardKeyPolicy(table string) string {
	c := guardPolicyCommand{
		Table: []string{table}, Strategy: string(guard.Stream), For: string(guard.UseRun), AuditRCU: auditDefault,
		leasesFlag: leasesFlag{"mayfly.leases"}, deadlinesTableFlag: deadlinesTableFlag{"mayfly.deadlines"},
	}
	var grants []policy.Grant
	for _, s := range c.policy(guard.Tables{Leases: c.LeasesTable, Deadlines: c.DeadlinesTable}).Statement {
		if !slices.ContainsFunc(s.Action, func(action string) bool { return !strings.HasPrefix(action, "dynamodb:") }) {
			grants = append(grants, policy.Grant{Sid: s.Sid, Actions: s.Action, Resources: s.Resource})
		}
	}
	return policy.Text(grants...)
}

// auditDefault is the default of --audit-rcu.
const auditDefault = 5
