package kafka_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"
)

// The broker of these tests is kfake, the protocol fake by the client's author, not Kafka itself.
// It speaks the protocol over TCP, keeps producers' sequence numbers and writes its records to
// disk. For tests with kill -9 it runs in a process of its own: this test program, which then does
// nothing else.
const (
	serveEnv = "MAYFLY_TEST_KAFKA_DATA" // the broker's directory
	portEnv  = "MAYFLY_TEST_KAFKA_PORT"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(serveEnv); dir != "" {
		serveUntilKilled(dir)
	}
	goleak.VerifyTestMain(m)
}

func serveUntilKilled(dir string) {
	port, _ := strconv.Atoi(os.Getenv(portEnv))
	if _, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(port), kfake.DataDir(dir), kfake.SyncWrites(), kfake.SeedTopics(3, "jobs")); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	select {}
}

// serve runs a broker in this process.
func serve(t testing.TB, options ...kfake.Opt) (brokers []string) {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.ListenAddrs()
}

// process is a broker that can be killed and restarted on its port and directory.
type process struct {
	t    testing.TB
	dir  string
	port int
	cmd  *exec.Cmd
}

func newProcess(t testing.TB) *process {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer free.Close()
	p := &process{t: t, dir: t.TempDir(), port: free.Addr().(*net.TCPAddr).Port}
	t.Cleanup(p.kill)
	return p
}

func (p *process) address() string { return fmt.Sprintf("127.0.0.1:%d", p.port) }

func (p *process) start() {
	p.t.Helper()
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), serveEnv+"="+p.dir, fmt.Sprintf("%s=%d", portEnv, p.port))
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		p.t.Fatalf("the broker said %q, %v", line, err)
	}
}

func (p *process) kill() {
	if p.cmd != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		p.cmd = nil
	}
}

// read reads a topic until enough returns true.
func read(t testing.TB, brokers []string, topic string, enough func([]*kgo.Record) bool, options ...kgo.Opt) (all []*kgo.Record) {
	t.Helper()
	options = append(options, kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topic), kgo.FetchMaxWait(100*time.Millisecond))
	client, err := kgo.NewClient(options...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !enough(all) {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("only %d records came: %s", len(all), ids(all))
		}
		all = append(all, fetches.Records()...)
	}
	return all
}

func atLeast(n int) func([]*kgo.Record) bool {
	return func(all []*kgo.Record) bool { return len(all) >= n }
}

// header returns a record's header, or "".
func header(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

func ids(all []*kgo.Record) string {
	var ids []string
	for _, r := range all {
		ids = append(ids, header(r, "ce_id"))
	}
	return strings.Join(ids, " ")
}
