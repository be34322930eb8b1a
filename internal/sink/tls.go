package sink

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// TLS says how a broker is trusted, and how it trusts us. Its zero value trusts as the system does.
type TLS struct {
	CA         string // file of certificates, in PEM, one of which has to have signed the broker's. Default: the system's
	Cert       string // file of our certificate, in PEM. Default: none
	Key        string // file of its key
	ServerName string // the name in the broker's certificate. Default: that of its address
}

// Config reads the files. nil gives nil: no TLS.
func (t *TLS) Config() (*tls.Config, error) {
	if t == nil {
		return nil, nil
	}
	config := &tls.Config{ServerName: t.ServerName, MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls: no certificate in %s", t.CA)
		}
	}
	if (t.Cert == "") != (t.Key == "") {
		return nil, errors.New("tls: certificate and key need each other")
	}
	if t.Cert != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
