package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/front/keyfile"
	"github.com/mayflydb/mayfly/internal/front/keys"
	"github.com/mayflydb/mayfly/internal/front/policy"
	"github.com/mayflydb/mayfly/internal/when"
)

type policyCheckCommand struct {
	Keys   string `help:"Key file of the server." placeholder:"FILE"`
	Key    string `help:"Access key or user in the key file." placeholder:"KEY"`
	Policy string `help:"JSON file of a single policy, in place of --keys and --key." placeholder:"FILE"`

	Action   string `help:"Action of the request, such as GetItem." required:"" placeholder:"ACTION"`
	Resource string `help:"Table, such as orders or orders/index/by-date; or an ARN; or * for an action without a resource." required:"" placeholder:"RESOURCE"`

	LeadingKey         []string  `help:"Partition key of an item in the request (dynamodb:LeadingKeys). Repeatable." sep:"none" placeholder:"VALUE"`
	Attribute          []string  `help:"Top-level attribute in the request (dynamodb:Attributes). Repeatable." sep:"none" placeholder:"NAME"`
	Select             string    `help:"Select of the request, such as SPECIFIC_ATTRIBUTES." placeholder:"SELECT"`
	ReturnValues       string    `help:"ReturnValues of the request, such as ALL_OLD." placeholder:"VALUES"`
	EnclosingOperation string    `help:"TransactWriteItems or TransactGetItems, for an action in a transaction." placeholder:"OPERATION"`
	SourceIP           string    `name:"source-ip" help:"Address of the client." placeholder:"IP"`
	Secure             bool      `help:"The request comes over TLS."`
	Time               time.Time `help:"Time of the request, such as 2030-01-01T00:00:00Z. Default: now." placeholder:"TIME"`

	Region  string `help:"Region in the ARN of --resource." default:"us-east-1"`
	Account string `help:"Account number in ARNs." default:"000000000000"`
	JSON    bool   `name:"json" help:"Print the decision and the result of each statement as JSON."`
}

func (policyCheckCommand) Help() string {
	return `Examples:

    mayfly policy check --keys keys.yaml --key ORDERS1 --action PutItem --resource orders
    mayfly policy check --keys keys.yaml --key orders-service --action Query --resource orders/index/by-date --leading-key ada --json
    mayfly policy check --policy own.json --action GetItem --resource orders --leading-key ada --attribute id --attribute total

It prints the decision and why each statement applies or not. It exits with 0 if the request is allowed, with 1 if it is
denied, and with 2 if the command line or a file is wrong. It calls nothing and reads no secrets. What you do not set is
missing from the request, and IAM defines what a condition on it means.`
}

// verdict is the decision about a request.
type verdict struct {
	Allowed    bool            `json:"allowed"`
	Reason     string          `json:"reason"`
	Action     string          `json:"action"`
	Resource   string          `json:"resource"`
	Principal  string          `json:"principal"`
	Statements []statementJSON `json:"statements"`
	explained  string          // the same as text
	refusal    string          // the message of the server's error
}

// statementJSON is the result of a statement.
type statementJSON struct {
	Policy    string `json:"policy"`
	Statement string `json:"statement"`
	Effect    string `json:"effect"`
	Applies   bool   `json:"applies"`
	Reason    string `json:"reason,omitempty"`
}

// Run prints the decision.
func (c policyCheckCommand) Run(ctx context.Context, s streams) error {
	r, err := c.request()
	if err != nil {
		return err
	}
	v, err := c.judge(ctx, r)
	if err != nil {
		return err
	}
	if c.JSON {
		err = writeIndentedJSON(s.out, v)
	} else if _, err = io.WriteString(s.out, v.explained); err != nil {
		err = fmt.Errorf("print the decision: %w", err)
	}
	if err != nil || v.Allowed {
		return err
	}
	return errors.New(v.refusal)
}

// request returns the request of the flags, as a user of the account makes it.
func (c policyCheckCommand) request() (*policy.Request, error) {
	r := &policy.Request{
		Action: c.Action, Resource: c.Resource, Time: c.Time, LeadingKeys: c.LeadingKey, Attributes: c.Attribute,
		Select: c.Select, ReturnValues: c.ReturnValues, EnclosingOperation: c.EnclosingOperation, SecureTransport: c.Secure,
	}
	if !strings.Contains(r.Action, ":") {
		r.Action = "dynamodb:" + r.Action
	}
	if r.Resource != "*" && !strings.HasPrefix(r.Resource, "arn:") {
		r.Resource = fmt.Sprintf("arn:aws:dynamodb:%s:%s:table/%s", c.Region, c.Account, r.Resource)
	}
	if r.Time.IsZero() {
		r.Time = time.Now()
	}
	if c.SourceIP != "" {
		var err error
		if r.SourceIP, err = netip.ParseAddr(c.SourceIP); err != nil {
			return nil, misused(fmt.Errorf("--source-ip %s is not an IP address", c.SourceIP), "for example --source-ip 10.0.0.7")
		}
	}
	switch {
	case !isAccount(c.Account):
		return nil, misused(fmt.Errorf("--account %s is not 12 digits", c.Account), "for example --account 123456789012")
	case c.Policy != "" && (c.Keys != "" || c.Key != ""):
		return nil, misused(errors.New("--policy cannot be used together with --keys and --key"), "set --policy alone, or --keys and --key")
	case c.Policy == "" && (c.Keys == "" || c.Key == ""):
		return nil, misused(errors.New("nothing to judge by"), "set --keys and --key, or --policy")
	}
	return r, nil
}

// judge decides by the given policy or by the key's policies.
func (c policyCheckCommand) judge(ctx context.Context, r *policy.Request) (*verdict, error) {
	if c.Policy != "" {
		text, err := os.ReadFile(c.Policy)
		if err != nil {
			return nil, misused(fmt.Errorf("--policy: %w", err), "give the path of an existing file")
		}
		return c.explain(r, "user", map[string]string{c.Policy: string(text)}, []string{c.Policy})
	}
	o := keyFileOptions(slog.New(slog.DiscardHandler))
	o.NoSecrets = true
	all, err := keyfile.Load(ctx, c.Keys, o)
	if err != nil {
		return nil, misusedKeyFile(err)
	}
	k, err := c.find(all)
	if err != nil {
		return nil, err
	}
	user := cmp.Or(k.User, k.AccessKey)
	switch {
	case !k.Active:
		return c.verdict(r, user, false, "the key is inactive", "the server refuses the key as unknown"), nil
	case !k.Expires.IsZero() && !r.Time.Before(k.Expires):
		return c.verdict(r, user, false, "the key expired at "+when.UTC(k.Expires), "the server refuses the key as expired"), nil
	case len(k.Policies) == 0:
		return c.verdict(r, user, true, "the key has full access", ""), nil
	}
	texts, names := map[string]string{}, []string{}
	for _, p := range k.Policies {
		texts[p.Name], names = p.Text, append(names, p.Name)
	}
	return c.explain(r, user, texts, names)
}

// find returns the key with an access key, or the only one of a user.
func (c policyCheckCommand) find(all []keyfile.Key) (*keyfile.Key, error) {
	var ofUser []*keyfile.Key
	var accessKeys []string
	for i := range all {
		k := &all[i]
		if k.AccessKey == c.Key {
			return k, nil
		}
		if k.User == c.Key {
			ofUser, accessKeys = append(ofUser, k), append(accessKeys, k.AccessKey)
		}
	}
	switch len(ofUser) {
	case 0:
		return nil, misused(fmt.Errorf("%s has neither an access key nor a user %s", c.Keys, c.Key), "give --key as it is in the file")
	case 1:
		return ofUser[0], nil
	}
	return nil, misused(fmt.Errorf("user %s has %d keys", c.Key, len(ofUser)), "set --key to one of %s", strings.Join(accessKeys, ", "))
}

// verdict returns a decision that no statement made.
func (c policyCheckCommand) verdict(r *policy.Request, user string, allowed bool, reason, refusal string) *verdict {
	word := "denied"
	if allowed {
		word = "allowed"
	}
	return &verdict{
		Allowed: allowed, Reason: word + ": " + reason, Action: r.Action, Resource: r.Resource, Principal: keys.UserARN(c.Account, user), Statements: []statementJSON{},
		explained: word + ": " + reason + "\n", refusal: refusal,
	}
}

// explain decides by policies: texts by names.
func (c policyCheckCommand) explain(r *policy.Request, user string, texts map[string]string, names []string) (*verdict, error) {
	var policies []*policy.Policy
	for _, name := range names {
		p, err := policy.Parse([]byte(texts[name]))
		if err != nil {
			return nil, misused(fmt.Errorf("policy %s: %w", name, err), "mayfly policy show table:orders prints a policy to start from")
		}
		p.Name = name
		policies = append(policies, p)
	}
	r.Principal, r.UserName, r.UserID = keys.UserARN(c.Account, user), user, user
	e := policy.Explain(r, policies, nil)
	text := e.String()
	v := c.verdict(r, user, e.Decision.Allowed, "", "")
	v.explained = text
	v.Reason, _, _ = strings.Cut(text, "\n")
	if !v.Allowed {
		v.refusal = e.Decision.Message(r)
	}
	for _, f := range e.Findings {
		v.Statements = append(v.Statements, statementJSON{f.Policy.Name, f.Statement, f.Effect, f.Applies, f.Reason})
	}
	return v, nil
}
