package program

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// selfSigned is a directory with a CA and two certificates that it has signed: the server's and one
// for clients. Each has a key, which stays, so processes that share the directory can renew
// certificates at once: whichever file remains fits its key.
type selfSigned struct {
	dir   string
	names []string // host names and addresses of the server
}

// The names of the certificates.
const (
	caName     = "ca"
	serverName = "server"
	clientName = "client"
)

const (
	caLife      = 10 * 365 * 24 * time.Hour
	leafLife    = 365 * 24 * time.Hour
	renewBefore = 30 * 24 * time.Hour // before the end of a certificate
	skewLimit   = time.Hour           // of clients' clocks behind this machine's
)

// namesFor returns the names of a server that listens on a host: also the machine's name if that is
// every address.
func namesFor(host string) []string {
	names := []string{"localhost", "127.0.0.1", "::1"}
	ip := net.ParseIP(host)
	switch {
	case host == "" || ip != nil && ip.IsUnspecified():
		host, _ = os.Hostname() // without it, clients use an address
	case ip != nil:
		host = ip.String()
	}
	if host != "" && !slices.Contains(names, host) {
		names = append(names, host)
	}
	return names
}

func (s *selfSigned) certificate(name string) string { return filepath.Join(s.dir, name+".pem") }

func (s *selfSigned) key(name string) string { return filepath.Join(s.dir, name+"-key.pem") }

// complete creates the missing files of the directory, and renews certificates that end soon or lack
// a name of the server.
func (s *selfSigned) complete(now time.Time) error {
	if err := os.MkdirAll(s.dir, 0o755); err != nil { // clients of other users read the CA's certificate
		return err
	}
	ca := &x509.Certificate{
		Subject: pkix.Name{CommonName: "mayfly CA for tests"}, NotAfter: now.Add(caLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	ca, signer, err := s.ensure(caName, ca, nil, now, nil, nil)
	if err != nil {
		return err
	}
	server := &x509.Certificate{
		Subject: pkix.Name{CommonName: "mayfly"}, NotAfter: now.Add(leafLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if _, _, err = s.ensure(serverName, server, s.names, now, ca, signer); err != nil {
		return err
	}
	client := &x509.Certificate{
		Subject: pkix.Name{CommonName: "client of mayfly"}, NotAfter: now.Add(leafLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	_, _, err = s.ensure(clientName, client, nil, now, ca, signer)
	return err
}

// ensure returns a certificate of the directory and its key. If it is missing, ends soon or lacks
// one of the hosts, ensure makes one as wanted, signed by the CA, or by itself if that is nil. A new
// certificate keeps the hosts of the previous one, since another process may need them.
func (s *selfSigned) ensure(name string, want *x509.Certificate, hosts []string, now time.Time, ca *x509.Certificate, signer crypto.Signer) (*x509.Certificate, crypto.Signer, error) {
	key, err := s.ensureKey(name)
	if err != nil {
		return nil, nil, err
	}
	path := s.certificate(name)
	old, err := readCertificate(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, nil, err
	case !key.PublicKey.Equal(old.PublicKey) || old.CheckSignatureFrom(cmp.Or(ca, old)) != nil:
		return nil, nil, fmt.Errorf("%s was not made here", path) // and is not overwritten
	default:
		known := slices.Clone(old.DNSNames)
		for _, ip := range old.IPAddresses {
			known = append(known, ip.String())
		}
		lacks := slices.ContainsFunc(hosts, func(h string) bool { return !slices.Contains(known, h) })
		if !lacks && now.Before(old.NotAfter.Add(-renewBefore)) {
			return old, key, nil
		}
		hosts = slices.Compact(slices.Sorted(slices.Values(append(known, hosts...))))
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			want.IPAddresses = append(want.IPAddresses, ip)
		} else {
			want.DNSNames = append(want.DNSNames, h)
		}
	}
	want.NotBefore = now.Add(-skewLimit)
	if signer == nil {
		ca, signer = want, key
	}
	der, err := x509.CreateCertificate(rand.Reader, want, ca, key.Public(), signer)
	if err != nil {
		return nil, nil, fmt.Errorf("make %s: %w", path, err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, fmt.Errorf("make %s: %w", path, err)
	}
	return made, key, replaceFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// ensureKey returns the key of a certificate. Of several processes that miss it, one makes it.
func (s *selfSigned) ensureKey(name string) (*ecdsa.PrivateKey, error) {
	path := s.key(name)
	switch text, err := os.ReadFile(path); {
	case err == nil:
		return parseKey(path, text)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	return key, errors.Join(err, f.Close())
}

// parseKey returns the key in the text of a file.
func parseKey(path string, text []byte) (*ecdsa.PrivateKey, error) {
	if block, _ := pem.Decode(text); block != nil {
		if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			if key, ok := key.(*ecdsa.PrivateKey); ok {
				return key, nil
			}
		}
	}
	return nil, fmt.Errorf("%s was not made here, or not completely", path)
}

func readCertificate(path string) (*x509.Certificate, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s has no certificate in PEM form", path)
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// replaceFile writes a file in one step: readers find the old text or the new.
func replaceFile(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // after the rename it is gone
	_, err = bytes.NewReader(text).WriteTo(f)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
