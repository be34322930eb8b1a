package policy

import (
	"fmt"
	"strings"
)

// An ARN has six parts: arn:partition:service:region:account:resource. The last may contain colons.
const (
	arnParts    = 6
	servicePart = 2
	ownerPart   = 4
)

// splitARN returns the parts of an ARN or of a pattern for one; colons in variables separate
// nothing. The result is shorter than arnParts if the ARN is incomplete.
func splitARN(text string, variables bool) (parts []string) {
	start, inside := 0, false
	for i := 0; i < len(text) && len(parts) < arnParts-1; i++ {
		switch {
		case variables && strings.HasPrefix(text[i:], "${"):
			inside = true
		case text[i] == '}':
			inside = false
		case text[i] == ':' && !inside:
			parts = append(parts, text[start:i])
			start = i + 1
		}
	}
	return append(parts, text[start:])
}

// accountOf returns the account in an ARN, or "".
func accountOf(arn string) string {
	for range ownerPart {
		_, arn, _ = strings.Cut(arn, ":")
	}
	account, _, _ := strings.Cut(arn, ":")
	return account
}

// arnPattern returns the parts of a pattern for ARNs, if it has all of them.
func (p *parser) arnPattern(text string) ([]string, error) {
	parts := splitARN(text, p.variables)
	if len(parts) < arnParts || parts[0] != "arn" {
		return nil, fmt.Errorf("%q is not an ARN of six parts; write for example arn:aws:dynamodb:*:*:table/orders", text)
	}
	return parts, nil
}

// compileResource returns the pattern for a value of Resource or NotResource. A star in it also
// matches colons. IAM allows neither wildcards nor capitals in the service, and variables in the
// last part only.
func (p *parser) compileResource(text string) (pattern, error) {
	if text == "*" {
		return p.compile(text, true)
	}
	parts, err := p.arnPattern(text)
	if err != nil {
		return pattern{}, fmt.Errorf("%w, or *", err)
	}
	if service := parts[servicePart]; service == "" || strings.Trim(service, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return pattern{}, fmt.Errorf("%q does not name the service; write arn:aws:dynamodb:…, or * for all resources", text)
	}
	if head := strings.Join(parts[:arnParts-1], ":"); p.variables && strings.Contains(head, "${") {
		return pattern{}, fmt.Errorf("%q has a variable before the fifth colon; IAM allows variables only after it", text)
	}
	return p.compile(text, true)
}

// compileARN returns the patterns for the parts of an ARN, which the Arn operators compare one by
// one.
func (p *parser) compileARN(text string) (all []pattern, err error) {
	parts, err := p.arnPattern(text)
	if err != nil {
		return nil, err
	}
	for _, part := range parts {
		one, err := p.compile(part, true)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// matchARN reports whether each part of an ARN matches its pattern.
func matchARN(parts []pattern, r *Request, text string) bool {
	m := matcher{r: r}
	for i := range parts {
		part, found := text, true
		if i < len(parts)-1 {
			part, text, found = strings.Cut(text, ":")
		}
		if !found || !m.match(&parts[i], part) {
			return false
		}
	}
	return true
}
