package scheduler

import "strings"

// arn is a parsed ARN.
type arn struct{ partition, service, region, account, resource string }

func parseARN(text string) (arn, bool) {
	parts := strings.SplitN(text, ":", 6)
	if len(parts) != 6 || parts[0] != "arn" || !strings.HasPrefix(parts[1], "aws") || parts[2] == "" || parts[5] == "" {
		return arn{}, false
	}
	return arn{parts[1], parts[2], parts[3], parts[4], parts[5]}, true
}

// universalOf returns the service and the operation in the ARN of a universal target.
func universalOf(a arn) (service, operation string, ok bool) {
	suffix, ok := strings.CutPrefix(a.resource, "aws-sdk:")
	if !ok || a.region != "" || a.account != "" {
		return "", "", false
	}
	service, operation, ok = strings.Cut(suffix, ":")
	word := func(s string) bool {
		for i := 0; i < len(s); i++ {
			if !alphanumeric(s[i]) {
				return false
			}
		}
		return s != "" && 'a' <= s[0] && s[0] <= 'z'
	}
	return service, operation, ok && word(service) && word(operation)
}
