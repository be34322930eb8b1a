// Package sigv4 verifies AWS Signature Version 4, in its two forms: the Authorization header and
// the query string.
//
// It is the server's half of the AWS SDKs' signing. A signature proves that the sender knows the
// secret of an access key, and that method, path, query, the signed headers and the body arrived as
// they were sent:
//
//	canonical request = method \n path \n query \n signed headers \n their names \n hex(SHA-256(body))
//	string to sign    = algorithm \n date \n date/region/service/aws4_request \n hex(SHA-256(canonical request))
//	signature         = hex(HMAC(key derived from secret, day, region and service, string to sign))
//
// All x-amz-* headers must be signed, with three exceptions that the server does not act on; see
// unsignedAllowed.
//
// The checks run in AWS's order, with AWS's errors and texts; the first failed check refuses the
// request. Signatures and session tokens are compared in constant time. Derived keys are cached, for
// requests with a valid signature.
//
// A signature must cover the whole body. Unsigned bodies and bodies that are signed in chunks are
// refused; see checkPayload.
//
// The package has no clock: the caller passes the time, from which the age of a signature follows.
package sigv4

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// Algorithm is the only accepted algorithm.
const Algorithm = "AWS4-HMAC-SHA256"

const (
	terminator = "aws4_request"
	dateLayout = "20060102T150405Z"
	dayLayout  = "20060102"
	skewMax    = 15 * time.Minute
)

// Credential is a key pair for signing requests.
type Credential struct {
	AccessKey string
	SecretKey string
	// SessionToken, if set, must accompany every request that is signed with this pair. If it is
	// empty, a request with a token is refused.
	SessionToken string
}

// Request is the parts of a request that a signature covers, as they arrived.
type Request struct {
	Service string // the service that the request must be signed for: "dynamodb", also for streams
	Method  string
	Path    string // escaped, as in the request line; empty means "/"
	Query   string // without the question mark
	Host    string
	Headers Headers
	Body    []byte // before any decompression
}

// Verifier checks requests against a fixed set of credentials. It is safe for concurrent use.
type Verifier struct {
	secrets map[string]Credential // by access key

	mu struct {
		sync.RWMutex
		keys map[keyScope]*signingKey // derived keys, at most keysMax
	}
}

// keysMax bounds the cache of derived keys. A full cache is emptied, and the next requests derive
// their keys again.
const keysMax = 256

// NewVerifier returns a verifier for requests that are signed with one of the credentials. Of two
// with the same access key, the later counts.
func NewVerifier(credentials ...Credential) *Verifier {
	v := &Verifier{secrets: make(map[string]Credential, len(credentials))}
	for _, c := range credentials {
		v.secrets[c.AccessKey] = c
	}
	v.mu.keys = make(map[keyScope]*signingKey)
	return v
}

// Verify returns nil if the request is signed with one of the verifier's credentials, and a
// *dynamo.Error otherwise. See Identify.
func (v *Verifier) Verify(r *Request, clock, other time.Time) error {
	_, err := v.Identify(r, clock, other)
	return err
}

// Identify returns the access key of the credential that the request is signed with, or a
// *dynamo.Error if it is signed with none of the verifier's.
//
// A signature is valid if its date is within 15 minutes of either clock. The two differ if a client
// may sign by the time of a database whose clock was moved; otherwise pass one time twice. The
// instants between them are not valid, or a captured request could be repeated for as long as the
// clocks are apart.
func (v *Verifier) Identify(r *Request, clock, other time.Time) (accessKey string, err error) {
	sig, scope, credential, err := v.checkHead(r, clock, other)
	if err != nil {
		return "", err
	}
	if err := v.checkSignature(r, sig, scope, credential.SecretKey); err != nil {
		return "", err
	}
	if !hmac.Equal([]byte(sig.token), []byte(credential.SessionToken)) {
		return "", unrecognized("The security token included in the request is invalid")
	}
	return credential.AccessKey, nil
}

// VerifyHead is the part of Verify that needs no body. It returns nil for a request that may be
// signed with one of the verifier's credentials. It ignores r.Body.
func (v *Verifier) VerifyHead(r *Request, clock, other time.Time) error {
	_, _, _, err := v.checkHead(r, clock, other)
	return err
}

func (v *Verifier) checkHead(r *Request, clock, other time.Time) (sig *signature, scope keyScope, c Credential, err error) {
	if sig, err = parse(r); err != nil {
		return nil, scope, c, err
	}
	if err := sig.checkDate(clock.UTC(), other.UTC()); err != nil {
		return nil, scope, c, err
	}
	if !slices.Contains(sig.signedHeaders, "host") {
		return nil, scope, c, notSigned("Host")
	}
	if err := sig.checkHeaders(r.Headers); err != nil {
		return nil, scope, c, err
	}
	if sig.algorithm != Algorithm {
		return nil, scope, c, incomplete("Unsupported AWS 'algorithm': '" + sig.algorithm + "' (only AWS4-HMAC-SHA256 for now). ")
	}
	if scope, err = sig.parseScope(r.Service); err != nil {
		return nil, scope, c, err
	}
	// An access key is not secret: every request contains it, and unknown ones have an error of their
	// own. So the look-up need not take constant time.
	c, known := v.secrets[scope.accessKey]
	if !known {
		return nil, scope, c, unrecognized("The security token included in the request is invalid.")
	}
	if err := checkPayload(sig, r.Headers); err != nil {
		return nil, scope, c, err
	}
	return sig, scope, c, nil
}

// checkDate refuses dates that are malformed, or more than 15 minutes from both clocks. The error
// compares the date with the nearer clock.
func (s *signature) checkDate(clock, other time.Time) error {
	at, err := time.Parse(dateLayout, s.date)
	if err != nil {
		return incomplete("Date must be in ISO-8601 'basic format'. Got '" + s.date + "'. See http://en.wikipedia.org/wiki/ISO_8601")
	}
	nearer := clock.Truncate(time.Second)
	if other = other.Truncate(time.Second); at.Sub(other).Abs() < at.Sub(nearer).Abs() {
		nearer = other
	}
	if oldest := nearer.Add(-skewMax); at.Before(oldest) {
		return invalid("Signature expired: " + s.date + " is now earlier than " + oldest.Format(dateLayout) +
			" (" + nearer.Format(dateLayout) + " - 15 min.)")
	}
	if newest := nearer.Add(skewMax); at.After(newest) {
		return invalid("Signature not yet current: " + s.date + " is still later than " + newest.Format(dateLayout) +
			" (" + nearer.Format(dateLayout) + " + 15 min.)")
	}
	return nil
}

// keyScope identifies a derived key: the credential of a request without the terminator.
type keyScope struct {
	accessKey, day, region, service string
}

// parseScope splits the credential and checks its parts: the service, the terminator, and that its
// day is the day of the signature's date, which checkDate must have accepted. Any region but the
// empty one is valid, since one server stands for all of them.
func (s *signature) parseScope(service string) (keyScope, error) {
	parts := strings.Split(s.credential, "/")
	if len(parts) != 5 {
		return keyScope{}, incomplete("Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, got '" +
			s.credential + "'")
	}
	scope := keyScope{accessKey: parts[0], day: parts[1], region: parts[2], service: parts[3]}
	var wrong strings.Builder
	if scope.region == "" {
		wrong.WriteString("Credential should be scoped to a valid region, not ''. ")
	}
	if scope.service != service {
		wrong.WriteString("Credential should be scoped to correct service: '" + service + "'. ")
	}
	if parts[4] != terminator {
		wrong.WriteString("Credential should be scoped with a valid terminator: 'aws4_request', not '" + parts[4] + "'. ")
	}
	if day := s.date[:len(dayLayout)]; scope.day != day {
		wrong.WriteString("Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: '" +
			scope.day + "' != '" + day + "', from '" + s.date + "'.")
	}
	if wrong.Len() > 0 {
		return keyScope{}, invalid(wrong.String())
	}
	return scope, nil
}

// scratch holds the buffers for the two strings that a verification builds. It is pooled, so
// nothing may refer to them afterwards.
type scratch struct {
	canonical    []byte
	stringToSign []byte
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// checkSignature returns an error unless the request has the signature that the secret produces. It
// caches the derived key of a valid signature. The error shows the canonical request and the string
// to sign, but nothing of the secret.
func (v *Verifier) checkSignature(r *Request, s *signature, scope keyScope, secret string) error {
	buf := scratches.Get().(*scratch)
	defer scratches.Put(buf)
	buf.canonical = appendCanonical(buf.canonical[:0], r, s)
	buf.stringToSign = appendStringToSign(buf.stringToSign[:0], s, scope, buf.canonical)

	key, cached := v.key(scope, secret)
	sum := key.sign(buf.stringToSign)
	var want [2 * sha256.Size]byte
	hex.Encode(want[:], sum[:])
	if !hmac.Equal(want[:], []byte(s.hex)) {
		return invalid("The request signature we calculated does not match the signature you provided. " +
			"Check your AWS Secret Access Key and signing method. Consult the service documentation for details.\n\n" +
			"The Canonical String for this request should have been\n'" + string(buf.canonical) + "'\n\n" +
			"The String-to-Sign should have been\n'" + string(buf.stringToSign) + "'")
	}
	if !cached {
		v.remember(scope, key)
	}
	return nil
}

func appendStringToSign(dst []byte, s *signature, scope keyScope, canonical []byte) []byte {
	dst = append(dst, Algorithm...)
	dst = append(dst, '\n')
	dst = append(dst, s.date...)
	dst = append(dst, '\n')
	dst = append(dst, scope.day...)
	dst = append(dst, '/')
	dst = append(dst, scope.region...)
	dst = append(dst, '/')
	dst = append(dst, scope.service...)
	dst = append(dst, "/"+terminator+"\n"...)
	sum := sha256.Sum256(canonical)
	return hex.AppendEncode(dst, sum[:])
}

func incomplete(message string) error {
	return &dynamo.Error{Code: dynamo.CodeIncompleteSignature, Message: message}
}

func invalid(message string) error {
	return &dynamo.Error{Code: dynamo.CodeInvalidSignature, Message: message}
}

func unrecognized(message string) error {
	return &dynamo.Error{Code: dynamo.CodeUnrecognizedClient, Message: message}
}
