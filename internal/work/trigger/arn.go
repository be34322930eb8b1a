package trigger

import (
	"regexp"
	"strings"
	"sync"

	"github.com/mayflydb/mayfly/internal/constraint"
)

// The forms of names in the API's model. AWS prints the pattern in the error about a value that
// does not match it.
const (
	functionPattern = `(arn:(aws[a-zA-Z-]*)?:lambda:)?((eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\d{1}:)?(\d{12}:)?(function:)?([a-zA-Z0-9-_]+)(:(\$LATEST(\.PUBLISHED)?|[a-zA-Z0-9-_]+))?`
	sourcePattern   = `arn:(aws[a-zA-Z0-9-]*):([a-zA-Z0-9\-])+:((eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\d{1})?:(\d{12})?:(.*)`

	functionMax     = 140
	functionNameMax = 64 // of the name alone
	destinationMax  = 350
)

var (
	functionForm = form(`^` + functionPattern + `$`)
	sourceForm   = form(`^` + sourcePattern + `$`)
	streamForm   = form(`^arn:aws[a-zA-Z0-9-]*:dynamodb:([a-z0-9-]+):(\d{12}):table/([a-zA-Z0-9_.-]+)/stream/(.+)$`)
	uuidForm     = form(`^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$`)
)

// form returns a regular expression that is compiled at its first use, so that programs without
// triggers start without it.
func form(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// otherTarget reports whether a function name is the ARN of a mapped target of another kind. AWS
// refuses such a name; here a mapping can deliver to every target.
func (o *Options) otherTarget(named string) bool {
	if len(named) > targetMax || !strings.HasPrefix(named, "arn:") || functionForm().MatchString(named) {
		return false
	}
	_, err := o.Resolver.Resolve(named)
	return err == nil
}

// functionARN returns the ARN of a function from any form that the API accepts: its name, its ARN
// or its partial ARN, each with or without a version or an alias.
func (o *Options) functionARN(named string) string {
	if o.otherTarget(named) {
		return named
	}
	parts := functionForm().FindStringSubmatch(named)
	region, account, name, qualifier := o.Region, o.Account, parts[11], parts[12]
	if r := strings.TrimSuffix(parts[3], ":"); r != "" {
		region = r
	}
	if a := strings.TrimSuffix(parts[9], ":"); a != "" {
		account = a
	}
	return "arn:aws:lambda:" + region + ":" + account + ":function:" + name + qualifier
}

// functionName returns the name in a function's ARN, without a version or an alias.
func functionName(arn string) string {
	_, name, found := strings.Cut(arn, ":function:")
	if !found {
		return arn
	}
	name, _, _ = strings.Cut(name, ":")
	return name
}

// mappingARN returns the ARN of a mapping.
func (o *Options) mappingARN(uuid string) string {
	return "arn:aws:lambda:" + o.Region + ":" + o.Account + ":event-source-mapping:" + uuid
}

// streamTable returns the table in the ARN of a DynamoDB stream; "" for any other ARN.
func streamTable(arn string) string {
	if parts := streamForm().FindStringSubmatch(arn); parts != nil && constraint.IsTable(parts[3]) {
		return parts[3]
	}
	return ""
}
