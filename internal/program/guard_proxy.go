package program

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/strict"
	"github.com/mayflydb/mayfly/internal/front/intake"
)

type guardProxyCommand struct {
	Table          []string `help:"Table whose expired items are hidden, with its TTL attribute. Default: the table's own TTL attribute, read once a minute. Repeatable." placeholder:"NAME[=ATTRIBUTE]"`
	AllTables      bool     `help:"Hide expired items of every table with TTL enabled."`
	Port           int      `help:"Port to listen on; 0 chooses a free one and prints it." default:"8002"`
	Host           string   `help:"Address to listen on." default:"127.0.0.1"`
	InsecureListen bool     `help:"Allow an address that other machines can reach without credentials. Every caller then acts with this command's credentials."`
	accessFlags
	tlsFlags

	BodyBudget byteSize `help:"Memory for the bodies of requests; from 32MB. Large ones wait for room." default:"128MB"`

	MaxSkew time.Duration `help:"Most difference between this machine's clock and the endpoint's, from 2s to 1000h. Beyond it, requests for these tables fail." default:"5s"`
	endpointClockFlag
	endpointFlags
	logFlags
}

func (guardProxyCommand) Help() string {
	return `Examples:

    mayfly guard proxy --endpoint aws --table sessions --table carts=expires_at --port 8002
    AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:8002 my-service

It forwards requests to the endpoint and hides expired items from answers and conditions, from the instant of their
deadlines: docs/guard-proxy.md. It signs requests to the endpoint with the usual AWS credentials. Callers' signatures are
checked only with --access-key.`
}

// Run forwards requests until ctx is done.
func (c guardProxyCommand) Run(ctx context.Context, s streams) error {
	rules, err := c.check()
	if err != nil {
		return err
	}
	e, err := c.connect(ctx, serviceDynamoDB)
	if err != nil {
		return err
	}
	url, err := e.resolved(ctx)
	if err != nil {
		return err
	}
	if !c.localClock() {
		if err := e.checkSkew(ctx, url, c.MaxSkew); err != nil {
			return err
		}
	}
	lines, err := e.describeRules(ctx, rules)
	if err != nil {
		return err
	}
	o := strict.ProxyOptions{Rules: rules, Endpoint: url, Region: e.Config.Region, Credentials: e.Config.Credentials, BodyBudget: int64(c.BodyBudget), TLS: e.tls(), Logger: c.logger(s.err)}
	if c.AccessKey != "" {
		o.Clients = []strict.Credential{{AccessKey: c.AccessKey, SecretKey: c.SecretKey}}
	}
	proxy, err := strict.NewProxy(o)
	if err != nil {
		return misused(err, "mayfly guard proxy --help")
	}
	listener, at, err := c.listen(c.Host, c.Port, s.out, o.Logger)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "strict reads before %s\n%slistening on %s\n", e.name(), strings.Join(lines, ""), at)
	return serveUntil(ctx, proxy, listener, o.Logger)
}

// check returns the rules that the flags set.
func (c guardProxyCommand) check() (strict.Rules, error) {
	rules := strict.Rules{Tables: map[string]string{}, All: c.AllTables, MaxSkew: c.MaxSkew}
	if c.localClock() {
		rules.Now = time.Now
	}
	for _, text := range c.Table {
		name, attribute, given := strings.Cut(text, "=")
		if name == "" || given && attribute == "" {
			return rules, misused(fmt.Errorf("--table %s is neither NAME nor NAME=ATTRIBUTE", text), "for example --table sessions=expires_at")
		}
		if other, twice := rules.Tables[name]; twice && other != attribute {
			return rules, misused(fmt.Errorf("--table %s is given twice, with different TTL attributes", name), "give each table once")
		}
		rules.Tables[name] = attribute
	}
	switch {
	case c.BodyBudget < intake.LeastBudget:
		return rules, misused(fmt.Errorf("--body-budget %d is less than 32 MB", c.BodyBudget), "for example --body-budget 128MB")
	case len(rules.Tables) == 0 && !rules.All:
		return rules, misused(errors.New("no table"), "set --table or --all-tables")
	case c.MaxSkew < 2*time.Second || c.MaxSkew > 1000*time.Hour:
		return rules, misused(fmt.Errorf("--max-skew %v is not between 2s and 1000h", c.MaxSkew), "for example --max-skew 5s")
	}
	return rules, c.accessFlags.check(c.Host, c.InsecureListen || c.TLSClientCA != "")
}

// resolved returns the endpoint's URL, also for Amazon's service.
func (e *endpoint) resolved(ctx context.Context) (string, error) {
	if !e.IsAWS() {
		return e.URL, nil
	}
	to, err := dynamodb.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx, dynamodb.EndpointParameters{Region: &e.Config.Region})
	if err != nil {
		return "", fmt.Errorf("find the endpoint of region %s: %w", e.Config.Region, err)
	}
	return to.URI.String(), nil
}

// checkSkew compares this machine's clock, which decides on expiry, with the endpoint's Date
// header.
func (e *endpoint) checkSkew(ctx context.Context, url string, most time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	before := time.Now()
	answer, err := e.Config.HTTPClient.Do(r)
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case errors.Is(err, context.DeadlineExceeded):
		return &advised{error: fmt.Errorf("%s does not answer", e.name()), next: "check that it runs, and its address", exit: exitUnavailable}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &advised{error: fmt.Errorf("nothing listens at %s", e.URL), next: "start it, or set --endpoint to its address", exit: exitUnavailable}
	case err != nil:
		return &advised{error: reasonOf(err), next: "check that the endpoint runs, and its address", exit: exitUnavailable}
	}
	answer.Body.Close()
	there, err := http.ParseTime(answer.Header.Get("Date"))
	if err != nil {
		return nil // no Date header
	}
	early, late := there.Add(-most), there.Add(time.Second+most)
	if before.After(late) || time.Now().Before(early) {
		return &advised{error: fmt.Errorf("the clock of %s shows %s, this machine's shows %s: items would be hidden too early or too late", e.name(), there.UTC().Format(time.RFC3339), before.UTC().Format(time.RFC3339)),
			next: "correct this machine's clock (NTP), or allow the difference with --max-skew", exit: exitClock}
	}
	return nil
}

// describeRules returns a line about the rule of each table.
func (e *endpoint) describeRules(ctx context.Context, rules strict.Rules) (lines []string, err error) {
	if rules.All {
		lines = append(lines, "every table with TTL enabled\n")
	}
	for table, attribute := range rules.Tables {
		if attribute == "" {
			if attribute, err = e.ttlOf(ctx, table); err != nil {
				return nil, err
			}
		}
		if attribute == "" {
			lines = append(lines, fmt.Sprintf("table %s: nothing is hidden until its TTL is enabled\n", table))
			continue
		}
		lines = append(lines, fmt.Sprintf("table %s: hidden from the instant in %s\n", table, attribute))
	}
	slices.Sort(lines)
	return lines, nil
}

// ttlOf returns a table's TTL attribute, or nothing if TTL is off.
func (e *endpoint) ttlOf(ctx context.Context, table string) (string, error) {
	out, err := e.DynamoDB().DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &table})
	switch {
	case answered(err, "ResourceNotFoundException"):
		return "", &advised{error: e.advise(err), next: fmt.Sprintf("create the table first, or name its TTL attribute: --table %s=ATTRIBUTE", table), exit: exitTable}
	case answered(err, "UnknownOperationException"), answered(err, "AccessDeniedException"):
		return "", advise(fmt.Errorf("%s did not return the TTL attribute of table %s: %w", e.name(), table, e.advise(err)), "name it: --table %s=ATTRIBUTE", table)
	case err != nil:
		return "", e.advise(err)
	}
	d := out.TimeToLiveDescription
	if d == nil || d.AttributeName == nil || d.TimeToLiveStatus != types.TimeToLiveStatusEnabled && d.TimeToLiveStatus != types.TimeToLiveStatusEnabling {
		return "", nil
	}
	return *d.AttributeName, nil
}
