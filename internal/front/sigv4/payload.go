package sigv4

import "strings"

// headerContentHash is the header or query parameter with the hash of the body, or with the manner
// in which the body is signed.
const headerContentHash = "X-Amz-Content-Sha256"

// checkPayload refuses a request whose signature does not cover the entire body: an unsigned body,
// or one that is signed in chunks. Both are for services that take large bodies, such as Amazon S3.
// Without this check the signature would differ, because the canonical request has the body's hash,
// and the error would hide the cause.
//
// Any other value is ignored: the signature is checked against the hash of the received body.
func checkPayload(s *signature, headers Headers) error {
	manner := first(headers, headerContentHash)
	if !unsupported(manner) {
		// Presigners move the header into the query.
		manner = s.query.Get(headerContentHash)
	}
	if !unsupported(manner) {
		return nil
	}
	return invalid("'X-Amz-Content-Sha256' is '" + manner + "', which this service does not support. " +
		"Sign the request with the SHA-256 of its whole body, and send the body in one piece.")
}

// unsupported reports whether a value of X-Amz-Content-Sha256 is one of those that are no hash:
// UNSIGNED-PAYLOAD, STREAMING-UNSIGNED-PAYLOAD-TRAILER, STREAMING-AWS4-HMAC-SHA256-PAYLOAD,
// STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD, and the last two with -TRAILER.
func unsupported(manner string) bool {
	return manner == "UNSIGNED-PAYLOAD" || strings.HasPrefix(manner, "STREAMING-")
}
