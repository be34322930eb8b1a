package program

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// crew is a group of workers beside a database-only server. They append their deliveries to a file,
// with the worker's name.
type crew struct {
	*testing.T
	dir    string
	server *served
}

func newCrew(t *testing.T) *crew {
	t.Helper()
	c := &crew{T: t, dir: t.TempDir()}
	var err error
	if c.server, err = startServer(c.dir, nil, "--memory", "--shards", "1", "--database-only"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.server.kill)
	return c
}

// join starts a worker.
func (c *crew) join(name string) *served {
	c.Helper()
	c.write(name+".yaml", fmt.Sprintf(`targets:
  - arn: "arn:mayfly:*"
    exec: {command: [sh, -c, 'read -r body; echo "%s $MAYFLY_DELIVERY_TIME $body" >> done']}
`, name))
	c.write("triggers.yaml", `triggers: [{name: orders, table: orders, target: "arn:mayfly:exec:::note", per: record}]`)
	w, err := startListening(c.dir, nil, "worker", "--endpoint", c.server.url, "--targets", name+".yaml", "--triggers", "triggers.yaml", "--lease", "1s")
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(w.kill)
	return w
}

func (c *crew) write(name, text string) {
	c.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
		c.Fatal(err)
	}
}

// mayfly runs a command against an endpoint.
func (c *crew) mayfly(endpoint string, args ...string) string {
	c.Helper()
	out, err := exec.Command("mayfly", append(args, "--endpoint", endpoint)...).CombinedOutput()
	if err != nil {
		c.Fatalf("mayfly %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// done returns the deliveries with a word in their lines, in order, with their workers.
func (c *crew) done(word string) (lines []string) {
	text, _ := os.ReadFile(filepath.Join(c.dir, "done"))
	for line := range strings.Lines(string(text)) {
		if strings.HasSuffix(line, "\n") && strings.Contains(line, word) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func (c *crew) await(what string, met func() bool) {
	c.Helper()
	for limit := time.Now().Add(time.Minute); !met(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(limit) {
			c.Fatalf("waited in vain for %s\n%s", what, strings.Join(c.done(""), "\n"))
		}
	}
}

// When a worker is killed another goes on with its schedules and triggers: no occurrence and no record is left out.
func TestWorkersTakeOver(t *testing.T) {
	t.Parallel()
	c := newCrew(t)
	first := c.join("first")
	create := []string{"schedule", "create", "pulse", "--every", "100ms", "--target", "arn:mayfly:exec:::note", "--input", "pulse"}
	if out := c.mayfly(first.url, create...); !strings.Contains(out, "every(100 milliseconds)") {
		t.Error(out)
	}
	c.createTable()
	c.put("a")
	c.await("the first worker", func() bool { return len(c.done("first ")) > 5 && len(c.done(`"S":"a"`)) == 1 })
	second := c.join("second")
	if out := c.mayfly(second.url, "schedule", "list"); !strings.Contains(out, "pulse") {
		t.Error(out)
	}
	first.kill()
	c.put("b")
	c.await("the second worker", func() bool { return len(c.done("second ")) > 20 && len(c.done(`"S":"b"`)) == 1 })
	c.mayfly(second.url, "schedule", "delete", "pulse")
	if code, err := second.stop(syscall.SIGTERM); code != "0" || err != nil {
		t.Errorf("the second worker exits with %s, %v\n%s", code, err, second.logged())
	}
	c.allPulses()
}

// allPulses checks that each occurrence was delivered, from the first to the last.
func (c *crew) allPulses() {
	c.Helper()
	seen := map[time.Time]bool{}
	var earliest, latest time.Time
	for _, line := range c.done("pulse") {
		at, err := time.Parse(time.RFC3339Nano, strings.Fields(line)[1])
		if err != nil {
			c.Fatal(err)
		}
		if seen[at] = true; earliest.IsZero() || at.Before(earliest) {
			earliest = at
		}
		if at.After(latest) {
			latest = at
		}
	}
	for at := earliest; !at.After(latest); at = at.Add(100 * time.Millisecond) {
		if !seen[at] {
			c.Errorf("that of %s was not delivered", at)
		}
	}
}

func (c *crew) createTable() {
	c.Helper()
	callDynamoDB(c.T, c.server.url, "CreateTable", `{"TableName":"orders","AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],`+
		`"BillingMode":"PAY_PER_REQUEST","StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_IMAGE"}}`)
}

func (c *crew) put(id string) {
	c.Helper()
	callDynamoDB(c.T, c.server.url, "PutItem", fmt.Sprintf(`{"TableName":"orders","Item":{"id":{"S":%q}}}`, id))
}

// A worker refuses to stand beside what fires schedules itself, and says so.
func TestWorkerRefuses(t *testing.T) {
	server, err := startServer(t.TempDir(), nil, "--memory")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.kill)
	for want, args := range map[string][]string{
		"fires schedules itself": {"--endpoint", server.url},
		"EventBridge Scheduler":  {"--endpoint", "aws", "--region", "us-east-1"},
		"nothing listens":        {"--endpoint", "http://127.0.0.1:9"},
		"need each other":        {"--endpoint", server.url, "--access-key", "k"},
		"--insecure-listen":      {"--endpoint", server.url, "--host", "0.0.0.0"},
	} {
		command := exec.Command("mayfly", append([]string{"worker", "--port", "0"}, args...)...)
		command.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=any")
		if out, err := command.CombinedOutput(); err == nil || !strings.Contains(string(out), want) || !strings.Contains(string(out), "next: ") {
			t.Errorf("%v: %v\n%s\nwant %q", args, err, out, want)
		}
	}
}
