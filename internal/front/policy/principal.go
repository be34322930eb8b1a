package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// principals is Principal or NotPrincipal. The zero value, which identity policies have, matches
// every principal.
type principals struct {
	present  bool
	negated  bool
	all      bool     // "*"
	arns     []string // of users, roles and sessions
	accounts []string // by number, also those of the form arn:aws:iam::123456789012:root
}

// compare returns noPart if the element matches the principal of a request. In an Allow statement
// it returns accountPart if only the principal's account is named: that delegates the permission to
// the account's identity policies.
func (p *principals) compare(r *Request, deny bool) part {
	account := slices.Contains(p.accounts, accountOf(r.Principal))
	root := account && strings.HasSuffix(r.Principal, ":root")
	named := slices.Contains(p.arns, r.Principal)
	session := r.Session != "" && slices.Contains(p.arns, r.Session)
	switch {
	case !p.present || p.all:
		return noPart
	case p.negated:
		// Only the principal itself is excepted, and a session only together with its role. An
		// account in the list excepts its root user, not the other principals.
		if root || named && (session || r.Session == "") {
			return principalPart
		}
		return noPart
	case named || session || root || account && deny:
		return noPart
	case account:
		return accountPart
	}
	return principalPart
}

// parsePrincipals reads Principal or NotPrincipal, which resource policies must have, and identity
// policies must not.
func (p *parser) parsePrincipals(elements map[string]json.RawMessage, deny bool) (all principals, err error) {
	if !p.policy.resource {
		for _, name := range []string{"Principal", "NotPrincipal"} {
			if _, present := elements[name]; present {
				return all, p.fail(name, "an identity policy has no principal, since it belongs to one; remove it")
			}
		}
		return all, nil
	}
	raw, in, err := p.either(elements, "Principal")
	if err != nil {
		return all, err
	}
	all.present, all.negated = true, in == "NotPrincipal"
	if all.negated && !deny {
		return all, p.fail(in, "IAM supports it with \"Effect\": \"Deny\" only; use Principal, or Deny")
	}
	values, err := p.principalValues(in, raw)
	if err != nil {
		return all, err
	}
	for _, one := range values {
		text, err := p.text(in, one)
		if err != nil {
			return all, err
		}
		if err := p.addPrincipal(&all, text); err != nil {
			return all, p.fail(in, "%w", err)
		}
	}
	return all, p.checkExcepted(&all)
}

// principalValues returns the values of "*" or {"AWS": …}.
func (p *parser) principalValues(in string, raw json.RawMessage) ([]json.RawMessage, error) {
	if text, ok := textOf(raw); ok && text == "*" {
		return []json.RawMessage{raw}, nil
	}
	kinds, ok := members(raw)
	if !ok || len(kinds) != 1 || kinds[0].name != "AWS" {
		return nil, p.fail(in, `%s is not supported; write "*", or {"AWS": "arn:aws:iam::123456789012:user/alice"}`, excerpt(raw))
	}
	return p.elements(in, kinds[0].value)
}

// addPrincipal adds "*", an account's number, or an ARN to the list.
func (p *parser) addPrincipal(all *principals, text string) error {
	if err := p.countPattern(); err != nil {
		return err
	}
	parts := splitARN(text, false)
	switch {
	case text == "*" && !all.negated:
		all.all = true
	case isAccount(text):
		all.accounts = append(all.accounts, text)
	case len(parts) < arnParts || parts[0] != "arn" || parts[servicePart] != "iam" && parts[servicePart] != "sts" ||
		!isAccount(parts[ownerPart]) || strings.ContainsAny(text, "*?$"):
		return fmt.Errorf("%q is not a principal; write an account's number, or an ARN without wildcards such as arn:aws:iam::123456789012:user/alice", text)
	case parts[arnParts-1] == "root":
		all.accounts = append(all.accounts, parts[ownerPart])
	default:
		all.arns = append(all.arns, text)
	}
	return nil
}

func isAccount(text string) bool { return len(text) == 12 && strings.Trim(text, "0123456789") == "" }

// checkExcepted returns an error if NotPrincipal names a principal and not its account. IAM
// documents that such a statement may deny the whole account.
func (p *parser) checkExcepted(all *principals) error {
	if !all.negated {
		return nil
	}
	for _, arn := range all.arns {
		if account := accountOf(arn); !slices.Contains(all.accounts, account) {
			return p.fail("NotPrincipal", "%q is excepted without its account, which IAM requires; add \"arn:aws:iam::%s:root\"", arn, account)
		}
	}
	return nil
}
