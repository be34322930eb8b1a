package program

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/command"
)

func TestHealthcheck(t *testing.T) {
	s, err := startServer(t.TempDir(), os.Environ(), "--memory")
	if err != nil {
		t.Fatal(err)
	}
	defer s.kill()
	port := s.url[strings.LastIndex(s.url, ":")+1:]
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and answers nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	foreign := httptest.NewServer(http.NotFoundHandler())
	defer foreign.Close()
	failing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, "not ready: the disk is gone")
	}))
	defer failing.Close()
	gone := httptest.NewServer(nil)
	gone.Close()

	for _, c := range []struct {
		line         string
		code         int
		out, problem string
	}{
		{"--port " + port, exitOK, "ready\n", ""},
		{"--host 0.0.0.0 --port " + port, exitOK, "ready\n", ""},
		{"--url " + s.url + "/", exitOK, "ready\n", ""},
		{"--json --url " + s.url, exitOK, `{"ready":true,"url":"` + s.url + `"}` + "\n", ""},
		{"--json --url " + failing.URL, exitError, "", "mayfly: " + failing.URL + " is not ready: the disk is gone\n"},
		{"--url " + gone.URL, exitError, "", "mayfly: nothing listens at " + gone.URL + "\n  next: start the server, or name its port with --port\n"},
		{"--url " + failing.URL, exitError, "", "mayfly: " + failing.URL + " is not ready: the disk is gone\n"},
		{"--url " + foreign.URL, exitError, "", "mayfly: " + foreign.URL + "/readyz returned 404 Not Found\n  next: check that a mayfly listens there, and name its port with --port\n"},
		{"--timeout 50ms --url http://" + silent.Addr().String(), exitError, "", "mayfly: http://" + silent.Addr().String() + " did not answer within 50ms\n"},
		{"--url http://%zz", exitUsage, "", "mayfly: invalid --url \"http://%zz\": invalid URL escape \"%zz\"\n  next: use an address such as http://127.0.0.1:8000\n"},
	} {
		var out, problem bytes.Buffer
		code := run(context.Background(), append([]string{"healthcheck"}, strings.Fields(c.line)...), &out, &problem)
		if code != c.code || out.String() != c.out || problem.String() != c.problem {
			t.Errorf("healthcheck %s exits with %d and prints %q, %q; want %d, %q, %q", c.line, code, out.String(), problem.String(), c.code, c.out, c.problem)
		}
	}
}

// serviceLinks are the variables that Kubernetes sets in every pod for a Service named mayfly with a named port, and Docker for a link of that name.
var serviceLinks = []string{
	"MAYFLY_SERVICE_HOST=10.0.0.1",
	"MAYFLY_SERVICE_PORT=8000",
	"MAYFLY_SERVICE_PORT_HTTP=8000",
	"MAYFLY_PORT=tcp://10.0.0.1:8000",
	"MAYFLY_PORT_8000_TCP=tcp://10.0.0.1:8000",
	"MAYFLY_PORT_8000_TCP_PROTO=tcp",
	"MAYFLY_PORT_8000_TCP_PORT=8000",
	"MAYFLY_PORT_8000_TCP_ADDR=10.0.0.1",
	"MAYFLY_NAME=/client/mayfly",
	"MAYFLY_METRICS_PORT=tcp://10.0.0.2:9100",
}

func TestServiceLinksAreIgnored(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mayfly.yaml"), []byte("port: 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := startPrinting(dir, append(os.Environ(), serviceLinks...), "serve", "--memory", "--config", "mayfly.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer s.kill()
	if strings.HasSuffix(s.url, ":8000") {
		t.Errorf("the server listens at %s, though the file asks for a free port", s.url)
	}
	for _, link := range serviceLinks {
		name, value, _ := strings.Cut(link, "=")
		t.Setenv(name, value)
	}
	parse := func(line string) any {
		t.Helper()
		parsed, err := command.New(command.Program{Name: "mayfly", Env: "MAYFLY"}, &cli{}).Parse(strings.Fields(line))
		if err != nil {
			t.Fatalf("mayfly %s: %v", line, err)
		}
		return parsed
	}
	if c := parse("healthcheck").(*healthcheckCommand); c.Port != 8000 {
		t.Errorf("healthcheck asks port %d", c.Port)
	}
	if c := parse("serve").(*serveCommand); c.Port != 8000 {
		t.Errorf("serve listens on port %d", c.Port)
	}
	if c := parse("guard run --table t").(*guardRunCommand); c.MetricsPort != nil {
		t.Errorf("guard has the port %d for metrics", *c.MetricsPort)
	}
	if c := parse("trigger run --table t").(*triggerRunCommand); c.Name != "" {
		t.Errorf("the trigger is named %s", c.Name)
	}
	// Other flags must not be named as one of these variables.
	var look func(*command.Command)
	look = func(c *command.Command) {
		for _, f := range c.Flags {
			for _, link := range serviceLinks {
				name, _, _ := strings.Cut(link, "=")
				if slices.Contains(f.Env, name) && f.Name != "port" && f.Name != "metrics-port" && f.Name != "name" {
					t.Errorf("%s --%s is set by %s, which orchestrators set", c.Path(), f.Name, link)
				}
			}
		}
		for _, child := range c.Children {
			look(child)
		}
	}
	look(command.New(command.Program{Name: "mayfly", Env: "MAYFLY"}, &cli{}).Fill())
	var out, problem bytes.Buffer
	if code := run(context.Background(), []string{"healthcheck", "--url", s.url}, &out, &problem); code != exitOK {
		t.Errorf("healthcheck exits with %d: %s", code, problem.String())
	}
}
