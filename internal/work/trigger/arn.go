package trigger

import (
	"regexp"
	"strings"

	"github.com/mayflydb/mayfly/internal/constraint"
)

// The forms of names, as the API's model has them. AWS prints a pattern in its message when a value does not match it.
const (
	functionPattern = `(arn:(aws[a-zA-Z-]*)?:lambda:)?((eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\d{1}:)?(\d{12}:)?(function:)?([a-zA-Z0-9-_]+)(:(\$LATEST(\.PUBLISHED)?|[a-zA-Z0-9-_]+))?`
	sourcePattern   = `arn:(aws[a-zA-Z0-9-]*):([a-zA-Z0-9\-])+:((eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\d{1})?:(\d{12})?:(.*)`

	functionMax     = 140
	functionNameMax = 64 // of the name alone
	destinationMax  = 350
)

var (
	functionForm    = regexp.MustCompile(`^` + functionPattern + `$`)
	sourceForm      = regexp.MustCompile(`^` + sourcePattern + `$`)
	destinationForm = regexp.MustCompile(`^(` + sourcePattern + `)?$`)
	streamForm      = regexp.MustCompile(`^arn:aws[a-zA-Z0-9-]*:dynamodb:([a-z0-9-]+):(\d{12}):table/([a-zA-Z0-9_.-]+)/stream/(.+)$`)
	uuidForm        = regexp.MustCompile(`^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$`)
)

// otherTarget reports whether what should name a function is the ARN of a target of another kind that is mapped. AWS refuses such a name; here a mapping can bring a
// stream to every target.
func (o *Options) otherTarget(named string) bool {
	if len(named) > targetMax || !strings.HasPrefix(named, "arn:") || functionForm.MatchString(named) {
		return false
	}
	_, err := o.Resolver.Resolve(named)
	return err == nil
}

// functionARN is the ARN of a function that was named in one of the forms that the API takes: its name, its ARN, its partial ARN, each with a version or
// an alias or without.
func (o *Options) functionARN(named string) string {
	if o.otherTarget(named) {
		return named
	}
	parts := functionForm.FindStringSubmatch(named)
	region, account, name, qualifier := o.Region, o.Account, parts[11], parts[12]
	if r := strings.TrimSuffix(parts[3], ":"); r != "" {
		region = r
	}
	if a := strings.TrimSuffix(parts[9], ":"); a != "" {
		account = a
	}
	return "arn:aws:lambda:" + region + ":" + account + ":function:" + name + qualifier
}

// functionName is the name in a function's ARN, without a version or an alias.
func functionName(arn string) string {
	_, name, is := strings.Cut(arn, ":function:")
	if !is {
		return arn
	}
	name, _, _ = strings.Cut(name, ":")
	return name
}

// mappingARN is a mapping's own ARN, by its UUID.
func (o *Options) mappingARN(uuid string) string {
	return "arn:aws:lambda:" + o.Region + ":" + o.Account + ":event-source-mapping:" + uuid
}

// streamTable is the name of the table that a stream's ARN names; "" where it is none of a DynamoDB stream.
func streamTable(arn string) string {
	if parts := streamForm.FindStringSubmatch(arn); parts != nil && constraint.IsTable(parts[3]) {
		return parts[3]
	}
	return ""
}
