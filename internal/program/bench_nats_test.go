package program

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"github.com/mayflydb/mayfly/internal/bench"
)

// serveNATS runs a NATS server in this process.
func serveNATS(t *testing.T, jetStream bool) *natsserver.Server {
	t.Helper()
	s, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: -1, JetStream: jetStream, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatal("the NATS server is not ready")
	}
	return s
}

// Records are delivered to NATS in a row of its own, and no stream is left there.
func TestBenchNATS(t *testing.T) {
	nats := serveNATS(t, true)
	stdout, stderr, code := runBench(t, "--quick", "--items", "500", "--only", "triggers", "--nats", nats.ClientURL(), "--json")
	var report bench.Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != 0 {
		t.Fatalf("exit %d, %v\n%s%s", code, err, stdout, stderr)
	}
	var to []string
	for _, x := range report.Delivered {
		to = append(to, x.To)
		if x.Records != 500 || x.PerS <= 0 || x.Lost != 0 {
			t.Errorf("%+v", x)
		}
	}
	if got := strings.Join(to, " "); got != "webhook nats" {
		t.Errorf("delivered to %q\n%s", got, stderr)
	}
	if left, err := nats.Jsz(nil); err != nil || left.Streams != 0 {
		t.Errorf("streams are left: %+v, %v", left, err)
	}
}

// Scheduled messages are compared with expiring items, and no stream is left there.
func TestBenchNATSTimers(t *testing.T) {
	t.Parallel()
	nats := serveNATS(t, true)
	stdout, stderr, code := runBench(t, "--quick", "--expiring", "1500", "--burst", "500", "--only", "expiry,burst", "--nats", nats.ClientURL(), "--json")
	var report bench.Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != 0 {
		t.Fatalf("exit %d, %v\n%s%s", code, err, stdout, stderr)
	}
	var rows []string
	for _, x := range report.Expiry {
		if x.Target == "NATS" {
			rows = append(rows, fmt.Sprintf("%s %d", x.Experiment, x.AtOnce))
			if x.Stream == nil || x.Faults != (bench.Faults{}) || x.Foreground != nil {
				t.Errorf("%+v", x)
			}
		}
	}
	if got := strings.Join(rows, ", "); got != "expiry 1500, expiry 1000, expiry 0, burst 500" {
		t.Errorf("rows: %s\n%s", got, stderr)
	}
	if e := report.Endpoints[len(report.Endpoints)-1]; e.Name != "NATS" || e.Version == "" || e.URL != nats.ClientURL() {
		t.Errorf("%+v", e)
	}
	if left, err := nats.Jsz(nil); err != nil || left.Streams != 0 {
		t.Errorf("streams are left: %+v, %v", left, err)
	}
}

// An unusable NATS server is reported before the measurement.
func TestBenchRefusesNATS(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "nats://" + free.Addr().String()
	free.Close()
	without := serveNATS(t, false).ClientURL()
	for _, tt := range []struct {
		args []string
		says string
		code int
	}{
		{[]string{"--nats", nobody}, "start a server with nats-server -js", exitError},
		{[]string{"--nats", without}, "nats-server -js", exitError},
		{[]string{"--nats", "nats://192.0.2.1"}, "--allow-remote", exitError},
		{[]string{"--nats", "nats://user:secret@127.0.0.1"}, "nats://host:port", exitUsage},
		{[]string{"--nats", "http://127.0.0.1:1"}, "nats://host:port", exitUsage},
		{[]string{"--nats", nobody, "--only", "get"}, "triggers", exitUsage},
		{[]string{"--nats", nobody, "--only", "triggers", "--url", "http://127.0.0.1:1"}, "triggers", exitUsage},
	} {
		stdout, stderr, code := runBench(t, append([]string{"--quick"}, tt.args...)...)
		if code != tt.code || !strings.Contains(stderr, tt.says) || strings.Contains(stderr, "secret") || stdout != "" {
			t.Errorf("%v: exit %d\n%s%s", tt.args, code, stdout, stderr)
		}
	}
}
