package manifests

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	corev1 "k8s.io/api/core/v1"
)

// launch is how a file in deploy starts the program.
type launch struct {
	from   string
	args   []string
	env    []string
	port   int      // that the file expects it to listen on
	probes []string // paths; nil: mayfly healthcheck
}

// TestCommandsRun starts the program with every command line in deploy, changed only in directories, addresses and ports.
func TestCommandsRun(t *testing.T) {
	units := []launch{unit(t, "mayfly.service"), unit(t, "mayfly-guard@.service")}
	endpoint := start(t, "serve", "--memory", "--port", "0")
	call(t, endpoint, "CreateTable", `{"TableName":"sessions","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"k","KeyType":"HASH"}],
		"AttributeDefinitions":[{"AttributeName":"k","AttributeType":"S"}],"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}}`)
	call(t, endpoint, "UpdateTimeToLive", `{"TableName":"sessions","TimeToLiveSpecification":{"AttributeName":"ttl","Enabled":true}}`)
	for _, l := range slices.Concat(units, composed(t), pods(t)) {
		t.Run(l.from, func(t *testing.T) {
			t.Setenv("AWS_ACCESS_KEY_ID", "any")
			t.Setenv("AWS_SECRET_ACCESS_KEY", "any")
			for _, variable := range l.env {
				name, value, _ := strings.Cut(variable, "=")
				t.Setenv(name, value)
			}
			args := slices.Clone(l.args)
			switch args[0] {
			case "serve":
				if l.port != 8000 {
					t.Errorf("the port is %d", l.port)
				}
				args = append(args, "--data", t.TempDir(), "--host", "127.0.0.1", "--port", "0")
			case "guard":
				if l.port != 0 && !slices.Contains(args, fmt.Sprintf("--metrics-port=%d", l.port)) && !slices.Contains(args, fmt.Sprint(l.port)) {
					t.Errorf("the port is %d, and the command line %q", l.port, args)
				}
				args = append(args, "--endpoint", endpoint, "--metrics-host", "127.0.0.1", "--metrics-port", "0")
			default:
				t.Fatalf("the command line is %q", args)
			}
			url := start(t, args...)
			for _, path := range l.probes {
				eventually(t, func() error { return get(url + path) })
			}
			if l.probes == nil {
				eventually(t, func() error {
					out, err := exec.Command(os.Getenv("MAYFLY_BINARY"), "healthcheck", "--url", url).CombinedOutput()
					if err != nil {
						return errors.New(string(out))
					}
					return nil
				})
			}
		})
	}
}

// start runs the program until the test ends, and returns where it listens.
func start(t *testing.T, args ...string) (url string) {
	t.Helper()
	program := os.Getenv("MAYFLY_BINARY")
	if program == "" {
		t.Fatal("MAYFLY_BINARY is not set: go build -o /tmp/mayfly ./cmd/mayfly && MAYFLY_BINARY=/tmp/mayfly go -C tools/manifests test")
	}
	c := exec.Command(program, args...)
	var problems bytes.Buffer
	c.Stderr = &problems
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	t.Cleanup(func() {
		c.Process.Signal(syscall.SIGTERM)
		<-read
		if err := c.Wait(); err != nil {
			t.Errorf("mayfly %q: %v\n%s", args, err, problems.String())
		}
	})
	lines := bufio.NewReader(out)
	for url == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			close(read)
			t.Fatalf("mayfly %q does not listen: %v\n%s", args, err, problems.String())
		}
		var ready struct{ URL string }
		if after, is := strings.CutPrefix(line, "listening on "); is {
			url = strings.TrimSpace(after)
		} else if json.Unmarshal([]byte(line), &ready) == nil { // --log-format json
			url = ready.URL
		}
	}
	go func() {
		defer close(read)
		io.Copy(io.Discard, lines)
	}()
	return url
}

func call(t *testing.T, url, operation, body string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=any/20300101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", operation, text)
	}
}

func get(url string) error {
	answer, err := http.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, answer.Status)
	}
	return nil
}

func eventually(t *testing.T, try func() error) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	err := try()
	for ; err != nil && time.Now().Before(deadline); err = try() {
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil {
		t.Error(err)
	}
}

// pods returns how the Kubernetes manifests start the program: the chart's defaults, and the chart with every value set.
func pods(t *testing.T) (all []launch) {
	t.Helper()
	full, err := render(t, everything)
	if err != nil {
		t.Fatal(err)
	}
	// Secrets of the cluster, as the kubelet would set them.
	secrets := []string{"MAYFLY_ACCESS_KEY=k", "MAYFLY_SECRET_KEY=s"}
	for name, texts := range map[string][]string{"kubernetes": {string(read(t, plainDir+"serve.yaml")), string(read(t, plainDir+"guard.yaml"))}, "helm": {full["serve.yaml"], full["guard.yaml"]}} {
		for _, text := range texts {
			o := decode(t, text)
			var c corev1.Container
			if len(o.sets) == 1 {
				c = o.sets[0].Spec.Template.Spec.Containers[0]
			} else {
				c = o.deploys[0].Spec.Template.Spec.Containers[0]
			}
			l := launch{from: name + " " + c.Args[0], args: c.Args, port: int(c.Ports[0].ContainerPort), probes: []string{c.StartupProbe.HTTPGet.Path, c.LivenessProbe.HTTPGet.Path, c.ReadinessProbe.HTTPGet.Path}}
			for _, e := range c.Env {
				if e.ValueFrom == nil {
					l.env = append(l.env, e.Name+"="+e.Value)
				} else {
					l.env = append(l.env, secrets[slices.IndexFunc(secrets, func(s string) bool { return strings.HasPrefix(s, e.Name+"=") })])
				}
			}
			if name == "helm" && l.args[0] == "guard" { // only the first of its tables exists
				l.args = slices.DeleteFunc(l.args, func(arg string) bool { return arg == "--table=orders" })
			}
			all = append(all, l)
		}
	}
	return all
}

// composed returns how the Compose file starts the program. Compose's own loader checks the file against its schema.
func composed(t *testing.T) (all []launch) {
	t.Helper()
	project, err := loader.LoadWithContext(context.Background(), types.ConfigDetails{
		ConfigFiles: []types.ConfigFile{{Filename: "../../deploy/compose.yaml"}},
		Environment: types.Mapping{"MAYFLY_GUARD_RUN_TABLE": "sessions", "AWS_REGION": "us-east-1"},
	}, func(o *loader.Options) { o.SetProjectName("mayfly", true); o.Profiles = []string{"guard"} })
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range project.Services {
		l := launch{from: "compose " + name, args: s.Command}
		for key, value := range s.Environment {
			if value != nil {
				l.env = append(l.env, key+"="+*value)
			}
		}
		test := s.HealthCheck.Test
		if !slices.Equal(test[:3], types.HealthCheckTest{"CMD", "/usr/bin/mayfly", "healthcheck"}) {
			t.Errorf("%s has the health check %q", name, test)
		}
		l.port = 8000
		if len(test) > 3 {
			fmt.Sscan(test[4], &l.port)
		}
		if name == "serve" && (len(s.Ports) != 1 || s.Ports[0].HostIP != "127.0.0.1" || s.Ports[0].Target != uint32(l.port) || s.Volumes[0].Target != "/data") {
			t.Errorf("serve publishes %+v and mounts %+v", s.Ports, s.Volumes)
		}
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) {
			t.Errorf("%s has rights that it does not need", name)
		}
		all = append(all, l)
	}
	if len(all) != 2 {
		t.Errorf("got %d services", len(all))
	}
	return all
}

// unit returns how a systemd unit starts the program. .ci/deploy has systemd itself check the file.
func unit(t *testing.T, name string) launch {
	t.Helper()
	l := launch{from: name, port: 8000}
	if strings.Contains(name, "@") {
		l.port = 0 // it has no metrics unless it is told to
	}
	for _, line := range strings.Split(string(read(t, "../../deploy/systemd/"+name)), "\n") {
		line = strings.NewReplacer("%i", "sessions", "%S", t.TempDir()).Replace(line)
		if command, is := strings.CutPrefix(line, "ExecStart=/usr/bin/mayfly "); is {
			l.args = strings.Fields(command)
		}
		if variable, is := strings.CutPrefix(line, "Environment="); is {
			l.env = append(l.env, variable)
		}
	}
	if l.args == nil {
		t.Fatalf("%s does not start /usr/bin/mayfly", name)
	}
	return l
}
