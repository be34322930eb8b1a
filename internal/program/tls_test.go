package program

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// madeFor makes the certificates of a directory for tests.
func madeFor(t *testing.T, now time.Time, names ...string) *selfSigned {
	t.Helper()
	s := &selfSigned{filepath.Join(t.TempDir(), "tls"), names}
	if err := s.complete(now); err != nil {
		t.Fatal(err)
	}
	return s
}

// trusting returns the settings of a client that trusts the CA of a directory.
func (s *selfSigned) trusting(t *testing.T) *tls.Config {
	t.Helper()
	text, err := os.ReadFile(s.certificate(caName))
	if err != nil {
		t.Fatal(err)
	}
	c := &tls.Config{RootCAs: x509.NewCertPool()}
	c.RootCAs.AppendCertsFromPEM(text)
	return c
}

func startTLS(t *testing.T, command string, args ...string) *served {
	t.Helper()
	s, err := startListening(t.TempDir(), nil, command, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	if !strings.HasPrefix(s.url, "https://") {
		t.Fatalf("it listens at %s", s.url)
	}
	return s
}

func TestTLSFlags(t *testing.T) {
	dir := t.TempDir()
	one, other := madeFor(t, time.Now(), "localhost"), madeFor(t, time.Now(), "localhost")
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	cert, key := one.certificate(serverName), one.key(serverName)
	for line, want := range map[string]string{
		"serve --memory --tls-cert " + cert:                                                     "--tls-cert and --tls-key need each other",
		"serve --memory --tls-key " + key:                                                       "--tls-cert and --tls-key need each other",
		"serve --memory --tls-client-ca " + cert:                                                "--tls-client-ca needs a certificate of the server",
		"serve --memory --tls-self-signed " + dir + " --tls-cert " + cert + " --tls-key " + key: "cannot be used together",
		"serve --memory --tls-cert missing --tls-key " + key:                                    "open missing: no such file",
		"serve --memory --tls-cert " + text + " --tls-key " + key:                               "failed to find any PEM data in certificate input",
		"serve --memory --tls-cert " + cert + " --tls-key " + other.key(serverName):             "private key does not match",
		"serve --memory --tls-cert " + cert + " --tls-key " + key + " --tls-client-ca " + text:  text + " has no certificate in PEM form",
		"serve --memory --tls-self-signed " + text:                                              "--tls-self-signed: mkdir",
		"serve --memory --host 0.0.0.0 --tls-self-signed " + dir:                                "other machines can reach 0.0.0.0",
		"healthcheck --client-cert " + cert:                                                     "--client-key : open : no such file",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		var out, problem bytes.Buffer
		if code := run(ctx, strings.Fields(line), &out, &problem); code != exitUsage || !strings.Contains(problem.String(), want) {
			t.Errorf("%s exits with %d: %s", line, code, problem.String())
		}
		cancel()
	}
}

// The SDK for Go reaches a server over HTTP/1.1 and HTTP/2, with large bodies and many calls at once.
func TestTLSServesSDK(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	s := startTLS(t, "serve", "--memory", "--tls-self-signed", dir, "--access-key", "ours", "--secret-key", "secret")
	ca := filepath.Join(dir, "ca.pem")
	if want := "clients trust this server with AWS_CA_BUNDLE=" + ca + "\n"; !strings.Contains(s.printed(), want) {
		t.Errorf("printed %s", s.printed())
	}
	t.Setenv("AWS_CA_BUNDLE", ca)
	t.Setenv("AWS_ENDPOINT_URL", s.url)
	for proto, change := range map[string]func(*http.Transport){"HTTP/1.1": withoutHTTP2, "HTTP/2.0": func(*http.Transport) {}} {
		c, err := config.LoadDefaultConfig(t.Context(), config.WithRegion("us-east-1"),
			config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("ours", "secret", "")))
		if err != nil {
			t.Fatal(err)
		}
		counted := &protoClient{HTTPClient: patient{c.HTTPClient.(*awshttp.BuildableClient).WithTransportOptions(change)}, want: proto}
		c.HTTPClient = counted
		api := dynamodb.NewFromConfig(c)
		table := aws.String("table" + proto[5:6])
		makeExpiring(t, api, *table)
		large := &types.AttributeValueMemberS{Value: strings.Repeat("x", 300<<10)}
		var calls sync.WaitGroup
		for n := range 100 {
			calls.Go(func() {
				item := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: fmt.Sprint(n)}, "large": large}
				if n%10 > 0 {
					delete(item, "large")
				}
				if _, err := api.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: table, Item: item}); err != nil {
					t.Errorf("%s: %v", proto, err)
				}
			})
		}
		calls.Wait()
		read := 0
		for page := dynamodb.NewScanPaginator(api, &dynamodb.ScanInput{TableName: table}); page.HasMorePages(); {
			out, err := page.NextPage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			read += len(out.Items)
		}
		if read != 100 || counted.other.Load() > 0 || counted.answers.Load() < 100 {
			t.Errorf("%s: %d items, %d answers, %d by another protocol", proto, read, counted.answers.Load(), counted.other.Load())
		}
	}
	if code, err := s.stop(syscall.SIGTERM); err != nil || code != "0" {
		t.Errorf("exited with %s, %v\n%s", code, err, s.logged())
	}
}

// protoClient counts answers.
type protoClient struct {
	aws.HTTPClient
	want           string
	answers, other atomic.Int64
}

func (c *protoClient) Do(r *http.Request) (*http.Response, error) {
	answer, err := c.HTTPClient.Do(r)
	if err == nil {
		c.answers.Add(1)
		if answer.Proto != c.want {
			c.other.Add(1)
		}
	}
	return answer, err
}

// The commands reach servers with a private CA, and with one that asks for their certificate; so do
// worker and proxy, which speak TLS themselves.
func TestTLSCommands(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	file := func(name string) string { return filepath.Join(dir, name) }
	s := startTLS(t, "serve", "--memory", "--database-only", "--tls-self-signed", dir, "--tls-client-ca", file("ca.pem"))
	shown := []string{"--client-cert", file("client.pem"), "--client-key", file("client-key.pem")}
	command := func(line string, more ...string) (code int, out, problem string) {
		var o, p bytes.Buffer
		code = run(t.Context(), append(strings.Fields(line), more...), &o, &p)
		return code, o.String(), p.String()
	}
	if code, _, problem := command("lifecycle list --endpoint "+s.url, shown...); code != exitError || !strings.Contains(problem, "set AWS_CA_BUNDLE to") {
		t.Errorf("without the CA: %d %s", code, problem)
	}
	t.Setenv("AWS_CA_BUNDLE", file("ca.pem"))
	if code, _, problem := command("lifecycle list --endpoint " + s.url); code != exitError || !strings.Contains(problem, "tls: certificate required") {
		t.Errorf("without a certificate: %d %s", code, problem)
	}
	if code, _, problem := command("lifecycle list --endpoint "+s.url, shown...); code != exitOK {
		t.Errorf("%d %s", code, problem)
	}
	if code, _, problem := command("lifecycle list --endpoint "+strings.Replace(s.url, "https", "http", 1), shown...); code == exitOK || !strings.Contains(problem, "this port speaks TLS; use https://") {
		t.Errorf("without TLS: %d %s", code, problem)
	}
	proxy := startTLS(t, "guard proxy", append(shown, "--all-tables", "--endpoint", s.url, "--tls-self-signed", dir, "--host", "localhost")...)
	if code, _, problem := command("lifecycle list --endpoint " + proxy.url); code != exitOK {
		t.Errorf("through the proxy: %d %s", code, problem)
	}
	worker := startTLS(t, "worker", append(shown, "--endpoint", s.url, "--tls-self-signed", dir)...)
	if code, _, problem := command("schedule list --endpoint " + worker.url); code != exitOK {
		t.Errorf("at the worker: %d %s", code, problem)
	}
	port := func(s *served) string { return s.url[strings.LastIndex(s.url, ":")+1:] }
	for line, want := range map[string]string{
		"--port " + port(worker):                             "ready\n",
		"--port " + port(worker) + " --host 0.0.0.0":         "ready\n",
		"--url " + worker.url:                                "ready\n",
		"--port " + port(s) + " " + strings.Join(shown, " "): "ready\n",
	} {
		if code, out, problem := command("healthcheck " + line); code != exitOK || out != want {
			t.Errorf("healthcheck %s: %d %s%s", line, code, out, problem)
		}
	}
	if code, _, problem := command("healthcheck --port " + port(s)); code != exitError || !strings.Contains(problem, "certificate required") {
		t.Errorf("healthcheck without a certificate: %d %s", code, problem)
	}
	if code, _, problem := command("healthcheck --url http://127.0.0.1:" + port(worker)); code != exitError || !strings.Contains(problem, "this port speaks TLS\n  next: use https:// in --url") {
		t.Errorf("healthcheck without TLS: %d %s", code, problem)
	}
}

// A server with --tls-client-ca answers only clients with a certificate of that CA; it may then be
// reached by others without further credentials.
func TestTLSMutual(t *testing.T) {
	t.Parallel()
	ours, theirs := madeFor(t, time.Now(), namesFor("")...), madeFor(t, time.Now())
	s := startTLS(t, "serve", "--memory", "--host", "0.0.0.0",
		"--tls-cert", ours.certificate(serverName), "--tls-key", ours.key(serverName), "--tls-client-ca", ours.certificate(caName))
	url := "https://127.0.0.1" + s.url[strings.LastIndex(s.url, ":"):] + "/healthz"
	for name, c := range map[string]struct {
		from    *selfSigned
		file    string
		allowed bool
	}{
		"a client's": {ours, clientName, true}, "none": {}, "the server's": {ours, serverName, false}, "another CA's": {theirs, clientName, false},
	} {
		settings := ours.trusting(t)
		if c.from != nil {
			pair, err := tls.LoadX509KeyPair(c.from.certificate(c.file), c.from.key(c.file))
			if err != nil {
				t.Fatal(err)
			}
			settings.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		for _, force := range []bool{false, true} {
			answer, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: settings.Clone(), ForceAttemptHTTP2: force}}).Get(url)
			if err == nil {
				answer.Body.Close()
			}
			if (err == nil) != c.allowed {
				t.Errorf("with %s certificate: %v", name, err)
			}
		}
	}
}

// Changed files are used for new connections. A broken file changes nothing and is logged once, and
// connections stay.
func TestTLSReload(t *testing.T) {
	t.Parallel()
	ours := madeFor(t, time.Now(), "127.0.0.1")
	expired := madeFor(t, time.Now().Add(-2*leafLife), "127.0.0.1")
	cert, key := filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	install := func(from *selfSigned) {
		t.Helper()
		for path, source := range map[string]string{cert: from.certificate(serverName), key: from.key(serverName)} {
			text, err := os.ReadFile(source)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	install(expired)
	s := startTLS(t, "serve", "--memory", "--tls-cert", cert, "--tls-key", key)
	seen := func() *x509.Certificate {
		t.Helper()
		c, err := tls.Dial("tcp", strings.TrimPrefix(s.url, "https://"), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0]
	}
	await := func(logged string) {
		t.Helper()
		for limit := time.Now().Add(20 * time.Second); !strings.Contains(s.logged(), logged); time.Sleep(50 * time.Millisecond) {
			seen()
			if time.Now().After(limit) {
				t.Fatalf("not logged: %s\n%s", logged, s.logged())
			}
		}
	}
	for _, want := range []string{"is not valid now", "other users of this machine can read the server's key"} {
		await(want) // the log is read beside the line that says where the server listens
		if strings.Count(s.logged(), want) != 1 {
			t.Errorf("the log has %q more than once: %s", want, s.logged())
		}
	}
	first := seen()
	var connected atomic.Int64
	stays := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(tls.ConnectionState) error {
		connected.Add(1)
		return nil
	}}}}
	ask := func() {
		t.Helper()
		answer, err := stays.Get(s.url + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
			t.Errorf("%s, %v", answer.Status, err)
		}
	}
	ask()
	install(ours)
	await("read the changed TLS files")
	second := seen()
	if second.Equal(first) || second.VerifyHostname("127.0.0.1") != nil {
		t.Error("a new connection shows the previous certificate")
	}
	if err := os.WriteFile(cert, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	await("the changed TLS files cannot be used")
	time.Sleep(lookEvery + 100*time.Millisecond)
	if !seen().Equal(second) || strings.Count(s.logged(), "cannot be used") != 1 {
		t.Errorf("after a broken file: %s", s.logged())
	}
	install(expired)
	for limit := time.Now().Add(20 * time.Second); !seen().Equal(first); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("the repaired file is not used: %s", s.logged())
		}
	}
	ask()
	if n := connected.Load(); n != 1 {
		t.Errorf("the open connection was made %d times", n)
	}
}

// A directory of certificates is completed and reused. Only what ends soon or lacks a name is made
// anew, with the same key, and nothing that others made is overwritten.
func TestTLSSelfSigned(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := madeFor(t, now, namesFor("127.0.0.1")...)
	read := func(name string) *x509.Certificate {
		t.Helper()
		c, err := readCertificate(s.certificate(name))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	pool := x509.NewCertPool()
	pool.AddCert(read(caName))
	verify := func(c *x509.Certificate, at time.Time, usage x509.ExtKeyUsage) {
		t.Helper()
		if _, err := c.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
			t.Error(err)
		}
	}
	verify(read(serverName), now, x509.ExtKeyUsageServerAuth)
	verify(read(clientName), now, x509.ExtKeyUsageClientAuth)
	for _, name := range []string{caName, serverName, clientName} {
		info, err := os.Stat(s.key(name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	}
	before := read(serverName)
	again := func(at time.Time, names ...string) *x509.Certificate {
		t.Helper()
		if err := (&selfSigned{s.dir, names}).complete(at); err != nil {
			t.Fatal(err)
		}
		return read(serverName)
	}
	if !again(now, "::1", "localhost").Equal(before) || !again(before.NotAfter.Add(-renewBefore-time.Hour), "::1").Equal(before) {
		t.Error("the certificate is not reused")
	}
	named := again(now, "db.example", "192.0.2.1")
	for _, name := range []string{"localhost", "::1", "127.0.0.1", "db.example", "192.0.2.1"} {
		if err := named.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
	later := before.NotAfter.Add(-renewBefore + time.Hour)
	renewed := again(later, "localhost")
	if renewed.Equal(named) || renewed.VerifyHostname("db.example") != nil || !slices.Equal(renewed.RawSubjectPublicKeyInfo, named.RawSubjectPublicKeyInfo) {
		t.Error("the certificate is not renewed with its key and names")
	}
	verify(renewed, later, x509.ExtKeyUsageServerAuth)
	old := read(caName)
	last := again(old.NotAfter.Add(-time.Hour), "localhost")
	if read(caName).Equal(old) {
		t.Error("the CA is not renewed")
	}
	verify(last, old.NotAfter.Add(-time.Hour), x509.ExtKeyUsageServerAuth) // by clients that know the first CA

	other := madeFor(t, now, "localhost")
	text, err := os.ReadFile(other.certificate(serverName))
	if err == nil {
		err = os.WriteFile(s.certificate(serverName), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := s.complete(now); err == nil || !strings.Contains(err.Error(), "server.pem was not made here") {
		t.Errorf("a certificate of others: %v", err)
	}
	if left, err := os.ReadFile(s.certificate(serverName)); err != nil || !bytes.Equal(left, text) {
		t.Errorf("it is overwritten: %v", err)
	}
}

// A running server renews the certificate that it has made.
func TestTLSRenewal(t *testing.T) {
	t.Parallel()
	made := time.Now().Add(renewBefore/2 - leafLife)
	s := madeFor(t, made, "localhost")
	c := &certificates{cert: s.certificate(serverName), key: s.key(serverName), made: s, log: slog.New(slog.DiscardHandler)}
	if err := c.start(made); err != nil {
		t.Fatal(err)
	}
	first := c.settings.Load()
	c.look(made.Add(time.Hour))
	if c.settings.Load() != first {
		t.Error("read again without need")
	}
	settings, err := c.current(nil)
	if err != nil || settings == first || settings.Certificates[0].Leaf.NotAfter.Before(time.Now().Add(leafLife-time.Hour)) {
		t.Errorf("%v, until %v", err, settings.Certificates[0].Leaf.NotAfter)
	}
}

// HTTP to the port of TLS, and TLS to the port of HTTP, are refused with an answer.
func TestTLSWrongPort(t *testing.T) {
	t.Parallel()
	plain, err := startServer(t.TempDir(), nil, "--memory")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.kill()
	_, err = http.Get(strings.Replace(plain.url, "http", "https", 1))
	if err == nil || !strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		t.Errorf("TLS to a plain port: %v", err)
	}
	secure := startTLS(t, "serve", "--memory", "--tls-self-signed", filepath.Join(t.TempDir(), "tls"))
	status, text, err := exchangeDynamoDB(strings.Replace(secure.url, "https", "http", 1), "PutItem", strings.Repeat("x", 8<<20))
	if err != nil || status != http.StatusBadRequest || !strings.Contains(text, "this port speaks TLS") {
		t.Errorf("%d %s, %v", status, text, err)
	}
}
