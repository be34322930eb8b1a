package scheduler

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/mayflydb/mayfly/internal/constraint"
)

// shape collects the members of a request that violate the API's model, each by itself. Paths are
// in lower camel case, as AWS prints them.
type shape struct {
	constraint.Problems
	busName *string // of a rule
}

// err returns a ValidationException with all violations, the error for an unknown event bus, or
// nil.
func (s *shape) err() error {
	if s.Any() {
		return invalid(s.Message())
	}
	return checkBus(s.busName)
}

// pattern is a regular expression of the model: its text, and a function that matches it.
type pattern struct {
	text  string // as AWS prints it, without anchors
	match func(string) bool
}

// regexPattern returns a pattern that is compiled at its first use.
func regexPattern(text string) *pattern {
	compiled := form(`^(?:` + text + `)$`)
	return &pattern{text, func(s string) bool { return compiled().MatchString(s) }}
}

// form returns a regular expression that is compiled at its first use, so that programs without
// schedules start without it.
func form(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// classPattern returns a pattern of characters of a class, without the cost of a regular
// expression. empty accepts the empty string too.
func classPattern(text string, class func(c byte) bool, empty bool) *pattern {
	return &pattern{text, func(s string) bool {
		for i := 0; i < len(s); i++ {
			if !class(s[i]) {
				return false
			}
		}
		return s != "" || empty
	}}
}

func alphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

var (
	patternName     = &pattern{`[0-9a-zA-Z-_.]+`, constraint.NameLetters}
	patternToken    = classPattern(`[a-zA-Z0-9-_]+`, func(c byte) bool { return alphanumeric(c) || strings.IndexByte("-_", c) >= 0 }, false)
	patternPipeline = classPattern(`[A-Za-z0-9\-_]*`, func(c byte) bool { return alphanumeric(c) || strings.IndexByte("-_", c) >= 0 }, true)
	patternKms      = regexPattern(`arn:aws(-[a-z]+)?:kms:[a-z0-9\-]+:\d{12}:(key|alias)\/[0-9a-zA-Z-_]*`)
	patternRole     = regexPattern(`arn:aws(-[a-z]+)?:iam::\d{12}:role\/[\w+=,.@\/-]+`)
	patternQueue    = regexPattern(`arn:aws(-[a-z]+)?:sqs:[a-z0-9\-]+:\d{12}:[a-zA-Z0-9\-_]+`)
	patternGroupARN = regexPattern(`arn:aws(-[a-z]+)?:scheduler:[a-z0-9\-]+:\d{12}:schedule-group\/[0-9a-zA-Z-_.]+`)
	patternSource   = &pattern{`(?=[/\.\-_A-Za-z0-9]+)((?!aws\.).*)|(\$(\.[\w_-]+(\[(\d+|\*)\])*)*)`, isEventSource}
	eventSourcePath = form(`^\$(\.[\w_-]+(\[(\d+|\*)\])*)*$`)
)

// isEventSource reports whether s matches the pattern of an event's source, which needs a
// look-ahead: s begins with certain characters but not with "aws.", or is a path.
func isEventSource(s string) bool {
	if eventSourcePath().MatchString(s) {
		return true
	}
	return s != "" && (alphanumeric(s[0]) || strings.IndexByte("/.-_", s[0]) >= 0) && !strings.HasPrefix(s, "aws.") && !strings.ContainsAny(s, "\n\r\u0085\u2028\u2029")
}

// text checks an optional string. A nil pattern accepts everything.
func (s *shape) text(path string, v *string, least, most int, p *pattern) {
	if v == nil {
		return
	}
	if p != nil && !p.match(*v) {
		s.Pattern(path, *v, p.text)
	}
	s.Length(path, *v, least, most)
}

// required checks a required string.
func (s *shape) required(path string, v *string, least, most int, p *pattern) {
	s.Required(path, v != nil)
	s.text(path, v, least, most, p)
}

// enum checks an optional value of an enumeration.
func (s *shape) enum(path string, v *string, set []string) {
	if v != nil {
		s.Enum(path, *v, set)
	}
}

// number checks an optional number.
func (s *shape) number(path string, v *int64, least, most int64) {
	if v != nil {
		s.Least(path, *v, least)
		s.Most(path, *v, most)
	}
}

// count checks the length of a list.
func (s *shape) count(path string, n, least, most int) {
	s.Count(path, n, least, most, func() string { return "[" + strconv.Itoa(n) + " elements]" })
}

func member(list string, i int) string { return list + "." + strconv.Itoa(i+1) + ".member" }

// Limits of several operations.
const (
	nameMax  = 64
	tokenMax = 64
)

func (s *shape) name(path string, v string) { s.text(path, &v, 1, nameMax, patternName) }

func (s *shape) optionalName(path string, v *string) { s.text(path, v, 1, nameMax, patternName) }

func (s *shape) token(v *string) { s.text("clientToken", v, 1, tokenMax, patternToken) }

// page checks the parameters of a page and returns its size.
func (s *shape) page(maxResults, nextToken *string) int {
	s.text("nextToken", nextToken, 1, nextTokenMax, nil)
	if maxResults == nil {
		return pageMax
	}
	n, err := strconv.ParseInt(*maxResults, 10, 32)
	if err != nil {
		s.Fail(*maxResults, "maxResults", "Member must be a number")
		return pageMax
	}
	s.number("maxResults", &n, 1, pageMax)
	return int(n)
}

const (
	pageMax      = 100
	nextTokenMax = 2048
)

// orElse returns the value of a member, or otherwise if it is missing.
func orElse[T any](v *T, otherwise T) T {
	if v == nil {
		return otherwise
	}
	return *v
}
