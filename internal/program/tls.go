package program

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// tlsFlags encrypt the connections of a server.
type tlsFlags struct {
	TLSCert       string `name:"tls-cert" help:"PEM file with the server's certificate and its chain: the server speaks TLS. Changed files are read again. Default: no TLS." placeholder:"FILE"`
	TLSKey        string `name:"tls-key" help:"PEM file with the certificate's key." placeholder:"FILE"`
	TLSClientCA   string `name:"tls-client-ca" help:"PEM file with CAs. Clients then need a certificate that one of them has signed." placeholder:"FILE"`
	TLSSelfSigned string `name:"tls-self-signed" help:"For tests, in place of --tls-cert and --tls-key: directory with a CA and certificates, made if missing." placeholder:"DIR"`
}

// check returns an error for flags that do not go together.
func (f tlsFlags) check() error {
	switch {
	case (f.TLSCert == "") != (f.TLSKey == ""):
		return misused(errors.New("--tls-cert and --tls-key need each other"), "set both; or for tests --tls-self-signed DIR")
	case f.TLSCert != "" && f.TLSSelfSigned != "":
		return misused(errors.New("--tls-cert and --tls-self-signed cannot be used together"), "")
	case f.TLSClientCA != "" && f.TLSCert == "" && f.TLSSelfSigned == "":
		return misused(errors.New("--tls-client-ca needs a certificate of the server"), "set --tls-cert and --tls-key; or for tests --tls-self-signed DIR")
	}
	return nil
}

// listen returns a listener for a port, with TLS if the flags ask for it, and its URL. Port 0
// selects a free port. It prints how clients come to trust certificates that it makes.
func (f tlsFlags) listen(host string, port int, out io.Writer, log *slog.Logger) (l net.Listener, url string, err error) {
	if err := f.check(); err != nil {
		return nil, "", err
	}
	c := &certificates{cert: f.TLSCert, key: f.TLSKey, clientCA: f.TLSClientCA, log: log}
	if f.TLSSelfSigned != "" {
		c.made = &selfSigned{f.TLSSelfSigned, namesFor(host)}
		c.cert, c.key = c.made.certificate(serverName), c.made.key(serverName)
	}
	if c.cert != "" {
		if err := c.start(time.Now()); err != nil {
			return nil, "", err
		}
	}
	if l, err = listen(host, port); err != nil {
		return nil, "", err
	}
	if c.cert == "" {
		return l, "http://" + l.Addr().String(), nil
	}
	if c.made != nil {
		ca, err := filepath.Abs(c.made.certificate(caName))
		if err != nil {
			ca = c.made.certificate(caName)
		}
		fmt.Fprintf(out, "clients trust this server with AWS_CA_BUNDLE=%s\n", ca)
	}
	return tls.NewListener(l, &tls.Config{GetConfigForClient: c.current}), "https://" + l.Addr().String(), nil
}

// certificates are the files behind a server's TLS. A handshake looks at them, at most once in
// lookEvery, so that an idle server does nothing.
type certificates struct {
	cert, key, clientCA string      // paths; clientCA may be empty
	made                *selfSigned // the directory of cert and key; nil: they are the user's
	log                 *slog.Logger
	settings            atomic.Pointer[tls.Config] // for new connections

	mu struct {
		sync.Mutex
		looked  time.Time
		version string    // of the files that were read last
		renewal time.Time // when the certificates in made are renewed
	}
}

const (
	lookEvery  = time.Second
	renewAgain = time.Hour // after a renewal that failed
)

// start reads the files for the first time.
func (c *certificates) start(now time.Time) error {
	if c.made != nil {
		if err := c.made.complete(now); err != nil {
			return misused(fmt.Errorf("--tls-self-signed: %w", err), "give an empty or new directory that this user may write to")
		}
	}
	c.mu.version = c.versionNow()
	settings, err := c.read(now)
	if err != nil {
		return misused(err, "mayfly serve --help explains the --tls flags; openssl x509 -in FILE -text shows a certificate")
	}
	c.use(settings)
	return nil
}

// current returns the settings for a new connection.
func (c *certificates) current(*tls.ClientHelloInfo) (*tls.Config, error) {
	if now := time.Now(); c.mu.TryLock() { // others do not wait for a slow disk
		defer c.mu.Unlock()
		if now.Sub(c.mu.looked) >= lookEvery {
			c.mu.looked = now
			c.look(now)
		}
	}
	return c.settings.Load(), nil
}

// look reads files that have changed. If they cannot be used, the settings stay.
func (c *certificates) look(now time.Time) {
	if c.made != nil && now.After(c.mu.renewal) {
		c.mu.renewal = now.Add(renewAgain)
		if err := c.made.complete(now); err != nil {
			c.log.Error("the server's certificate cannot be renewed", "directory", c.made.dir, "error", err, "again_in", renewAgain)
		}
	}
	version := c.versionNow()
	if version == c.mu.version {
		return
	}
	c.mu.version = version
	settings, err := c.read(now)
	if err != nil {
		c.log.Error("the changed TLS files cannot be used; the previous ones stay in use", "error", err)
		return
	}
	c.use(settings)
	c.log.Info("read the changed TLS files", "certificate", c.cert, "expires", settings.Certificates[0].Leaf.NotAfter)
}

func (c *certificates) use(settings *tls.Config) {
	c.settings.Store(settings)
	c.mu.renewal = settings.Certificates[0].Leaf.NotAfter.Add(-renewBefore)
}

// versionNow returns a text that changes when a file does.
func (c *certificates) versionNow() (version string) {
	for _, path := range []string{c.cert, c.key, c.clientCA} {
		if info, err := os.Stat(path); err == nil {
			version += fmt.Sprint(info.ModTime().UnixNano(), info.Size(), " ")
		} else {
			version += "missing "
		}
	}
	return version
}

// read returns the settings of the files.
func (c *certificates) read(now time.Time) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", c.cert, c.key, err)
	}
	settings := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, Certificates: []tls.Certificate{pair}}
	if c.clientCA != "" {
		text, err := os.ReadFile(c.clientCA)
		if err != nil {
			return nil, fmt.Errorf("--tls-client-ca: %w", err)
		}
		settings.ClientAuth, settings.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		if !settings.ClientCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--tls-client-ca: %s has no certificate in PEM form", c.clientCA)
		}
	}
	if now.After(pair.Leaf.NotAfter) || now.Before(pair.Leaf.NotBefore) {
		c.log.Warn("the server's certificate is not valid now: most clients will refuse it",
			"certificate", c.cert, "from", pair.Leaf.NotBefore, "until", pair.Leaf.NotAfter)
	}
	if info, err := os.Stat(c.key); err == nil && info.Mode()&0o004 != 0 && runtime.GOOS != "windows" {
		c.log.Warn("other users of this machine can read the server's key", "key", c.key, "mode", info.Mode())
	}
	return settings, nil
}
