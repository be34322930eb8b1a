package sink

import (
	"crypto/tls"
	"crypto/x509"
	"os"

	"github.com/mayflydb/mayfly/internal/option"
)

// TLS configures trust between us and a broker. The zero value trusts the system's authorities.
type TLS struct {
	// file of PEM certificates, one of which must have signed the broker's. Default: the system's
	CA         string
	Cert       string // file of our PEM certificate. Default: none
	Key        string // file of its key
	ServerName string // the name in the broker's certificate. Default: the host of its address
}

// Config reads the files. It returns nil for a nil TLS: no TLS.
func (t *TLS) Config() (*tls.Config, error) {
	if t == nil {
		return nil, nil
	}
	config := &tls.Config{ServerName: t.ServerName, MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, option.Errorf("tls", "%w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, option.Errorf("tls", "no certificate in %s", t.CA)
		}
	}
	if (t.Cert == "") != (t.Key == "") {
		return nil, option.Errorf("tls", "certificate and key need each other")
	}
	if t.Cert != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, option.Errorf("tls", "%w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
