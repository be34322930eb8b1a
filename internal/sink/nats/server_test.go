package nats_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"
)

// For tests with kill -9 a server runs in a process of its own: this test program, which then does
// nothing else.
const (
	serveEnv = "MAYFLY_TEST_NATS_STORE" // the directory of its store
	portEnv  = "MAYFLY_TEST_NATS_PORT"
)

func TestMain(m *testing.M) {
	if store := os.Getenv(serveEnv); store != "" {
		serveUntilKilled(store)
	}
	goleak.VerifyTestMain(m)
}

func serveUntilKilled(store string) {
	port, _ := strconv.Atoi(os.Getenv(portEnv))
	s, err := newServer(&server.Options{Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: store, NoSigs: true})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	s.WaitForShutdown()
}

func newServer(o *server.Options) (*server.Server, error) {
	o.NoLog = true
	s, err := server.NewServer(o)
	if err != nil {
		return nil, err
	}
	s.Start()
	if !s.ReadyForConnections(30 * time.Second) {
		return nil, fmt.Errorf("the NATS server is not ready")
	}
	return s, nil
}

// serve runs a server with JetStream in this process.
func serve(t testing.TB, change func(*server.Options)) (url string) {
	t.Helper()
	o := &server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true}
	if change != nil {
		change(o)
	}
	s, err := newServer(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	return s.ClientURL()
}

// process is a server that can be killed and restarted on its port and store.
type process struct {
	t     testing.TB
	store string
	port  int
	cmd   *exec.Cmd
}

func (p *process) url() string { return fmt.Sprintf("nats://127.0.0.1:%d", p.port) }

func (p *process) start() {
	p.t.Helper()
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), serveEnv+"="+p.store, fmt.Sprintf("%s=%d", portEnv, p.port))
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		p.t.Fatalf("the server said %q, %v", line, err)
	}
}

func (p *process) kill() {
	if p.cmd != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		p.cmd = nil
	}
}

// stream creates a stream and returns a handle to it.
func stream(t testing.TB, url string, c jetstream.StreamConfig) jetstream.Stream {
	t.Helper()
	conn, err := natsgo.Connect(url, natsgo.MaxReconnects(-1), natsgo.ReconnectWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.CreateStream(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// messages returns all messages of a stream.
func messages(t testing.TB, s jetstream.Stream) (all []*jetstream.RawStreamMsg) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	info, err := s.Info(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for n := info.State.FirstSeq; n <= info.State.LastSeq && info.State.Msgs > 0; n++ {
		m, err := s.GetMsg(ctx, n)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

func ids(all []*jetstream.RawStreamMsg) string {
	var ids []string
	for _, m := range all {
		ids = append(ids, m.Header.Get(jetstream.MsgIDHeader))
	}
	return strings.Join(ids, " ")
}
