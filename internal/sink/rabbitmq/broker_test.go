//go:build linux

package rabbitmq_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"go.uber.org/goleak"
)

// The broker of these tests is RabbitMQ from Debian's package rabbitmq-server, with a name, ports
// and directories of its own. All tests share one.
var shared struct {
	sync.Once
	*broker
	skip string // the reason if there is none
	err  error
}

const (
	// not the one of the PATH, which must run as root or rabbitmq and writes below /var
	serverProgram = "/usr/lib/rabbitmq/bin/rabbitmq-server"
	maxBody       = 50_000 // the broker's limit for a message
)

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.broker != nil {
		shared.stop()
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Println(err)
		code = 1
	}
	os.Exit(code)
}

// broker is a RabbitMQ that can be killed and restarted on its port and data.
type broker struct {
	dir               string
	port, dist, names int
	epmd, server      *exec.Cmd
}

// serve returns the shared broker, running.
func serve(t testing.TB) *broker {
	t.Helper()
	shared.Do(func() {
		shared.broker, shared.skip, shared.err = newBroker()
	})
	if shared.skip != "" {
		t.Skip(shared.skip)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.broker
}

func newBroker() (b *broker, skip string, err error) {
	if _, err := os.Stat(serverProgram); err != nil {
		return nil, "RabbitMQ is not installed: Debian's package is rabbitmq-server", nil
	}
	names, err := exec.LookPath("epmd")
	if err != nil {
		return nil, "Erlang's epmd is not installed: Debian's package is erlang-base", nil
	}
	b = &broker{}
	if b.dir, err = os.MkdirTemp("", "mayfly-rabbitmq-"); err != nil {
		return nil, "", err
	}
	for _, port := range []*int{&b.port, &b.dist, &b.names} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, "", err
		}
		defer l.Close()
		*port = l.Addr().(*net.TCPAddr).Port
	}
	config := fmt.Sprintf("listeners.tcp.1 = 127.0.0.1:%d\nlog.console = false\nmax_message_size = %d\n", b.port, maxBody)
	if err := os.WriteFile(filepath.Join(b.dir, "rabbitmq.conf"), []byte(config), 0o600); err != nil {
		return nil, "", err
	}
	// otherwise the server would leave one running
	b.epmd = exec.Command(names, "-port", strconv.Itoa(b.names), "-address", "127.0.0.1")
	b.epmd.Env = b.environment()
	return b, "", nil
}

func (b *broker) environment() []string {
	in := func(name string) string { return filepath.Join(b.dir, name) }
	return append(os.Environ(),
		"HOME="+b.dir, // for the cookie
		fmt.Sprintf("RABBITMQ_NODENAME=mayfly%d@localhost", b.port), fmt.Sprintf("RABBITMQ_NODE_PORT=%d", b.port), fmt.Sprintf("RABBITMQ_DIST_PORT=%d", b.dist),
		"RABBITMQ_MNESIA_BASE="+in("mnesia"), "RABBITMQ_LOG_BASE="+in("log"), "RABBITMQ_CONFIG_FILE="+in("rabbitmq"), "RABBITMQ_ENABLED_PLUGINS_FILE="+in("plugins"),
		"RABBITMQ_PLUGINS_EXPAND_DIR="+in("expanded"), "RABBITMQ_PID_FILE="+in("pid"), "RABBITMQ_CONF_ENV_FILE=/dev/null",
		fmt.Sprintf("ERL_EPMD_PORT=%d", b.names), "ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1} +sbwt none",
	)
}

func (b *broker) url() string { return fmt.Sprintf("amqp://guest:guest@127.0.0.1:%d", b.port) }

// start starts the server unless it runs, and waits until it answers.
func (b *broker) start(t testing.TB) {
	t.Helper()
	if b.epmd.Process == nil {
		if err := b.epmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	if b.server == nil {
		b.server = exec.Command(serverProgram)
		b.server.Env = b.environment()
		b.server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := b.server.Start(); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	for range 1200 {
		var c *amqp.Connection
		if c, err = amqp.Dial(b.url()); err == nil {
			_ = c.Close()
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	log, _ := filepath.Glob(filepath.Join(b.dir, "log", "*"))
	t.Fatalf("RabbitMQ does not answer: %v; logs: %s", err, log)
}

// kill ends the server as kill -9 does.
func (b *broker) kill() {
	if b.server == nil {
		return
	}
	_ = syscall.Kill(-b.server.Process.Pid, syscall.SIGKILL)
	_ = b.server.Wait()
	b.server = nil
	for range 1000 { // the Erlang machine is no longer our child
		if c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", b.port)); errors.Is(err, syscall.ECONNREFUSED) {
			return
		} else if err == nil {
			_ = c.Close()
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (b *broker) stop() {
	b.kill()
	if b.epmd != nil && b.epmd.Process != nil {
		_ = b.epmd.Process.Kill()
		_ = b.epmd.Wait()
	}
	_ = os.RemoveAll(b.dir)
}

// declare declares a durable queue and returns a channel for queries about it.
func declare(t testing.TB, b *broker, queue string, arguments amqp.Table) *amqp.Channel {
	t.Helper()
	c, err := amqp.Dial(b.url())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	ch, err := c.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueueDeclare(queue, true, false, false, false, arguments); err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueuePurge(queue, false); err != nil {
		t.Fatal(err)
	}
	return ch
}

// drain removes all messages from a queue and returns them.
func drain(t testing.TB, ch *amqp.Channel, queue string) (all []amqp.Delivery) {
	t.Helper()
	for {
		d, there, err := ch.Get(queue, true)
		if err != nil {
			t.Fatal(err)
		}
		if !there {
			return all
		}
		all = append(all, d)
	}
}

func ids(all []amqp.Delivery) string {
	var ids []string
	for _, d := range all {
		ids = append(ids, d.MessageId)
	}
	return strings.Join(ids, " ")
}

// control runs an administrator's command on the server.
func (b *broker) control(t testing.TB, arguments ...string) {
	t.Helper()
	command := exec.Command("/usr/lib/rabbitmq/bin/rabbitmqctl", arguments...)
	command.Env = b.environment()
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("rabbitmqctl %v: %v\n%s", arguments, err, out)
	}
}
