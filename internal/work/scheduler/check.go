package scheduler

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/constraint"
)

// shape collects what is wrong with the shape of a request: what the API's model says of each member by itself. Paths are in lower camel case, as AWS
// prints them.
type shape struct{ constraint.Problems }

// err is nil, or the ValidationException that names everything collected.
func (s *shape) err() error {
	if !s.Any() {
		return nil
	}
	return invalid(s.Message())
}

// pattern is a regular expression of the model: as it is printed, and how it is matched.
type pattern struct {
	text  string // without its anchors, as AWS prints it
	match func(string) bool
}

func compiled(text string) *pattern {
	return &pattern{text, regexp.MustCompile(`^(?:` + text + `)$`).MatchString}
}

// made is a pattern of one or more characters of a class, or of none too, without the cost of a regular expression.
func made(text string, of func(c byte) bool, empty bool) *pattern {
	return &pattern{text, func(s string) bool {
		for i := 0; i < len(s); i++ {
			if !of(s[i]) {
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
	patternToken    = made(`[a-zA-Z0-9-_]+`, func(c byte) bool { return alphanumeric(c) || strings.IndexByte("-_", c) >= 0 }, false)
	patternPipeline = made(`[A-Za-z0-9\-_]*`, func(c byte) bool { return alphanumeric(c) || strings.IndexByte("-_", c) >= 0 }, true)
	patternKms      = compiled(`arn:aws(-[a-z]+)?:kms:[a-z0-9\-]+:\d{12}:(key|alias)\/[0-9a-zA-Z-_]*`)
	patternRole     = compiled(`arn:aws(-[a-z]+)?:iam::\d{12}:role\/[\w+=,.@\/-]+`)
	patternQueue    = compiled(`arn:aws(-[a-z]+)?:sqs:[a-z0-9\-]+:\d{12}:[a-zA-Z0-9\-_]+`)
	patternGroupARN = compiled(`arn:aws(-[a-z]+)?:scheduler:[a-z0-9\-]+:\d{12}:schedule-group\/[0-9a-zA-Z-_.]+`)
	patternSource   = &pattern{`(?=[/\.\-_A-Za-z0-9]+)((?!aws\.).*)|(\$(\.[\w_-]+(\[(\d+|\*)\])*)*)`, isEventSource}
	eventSourcePath = regexp.MustCompile(`^\$(\.[\w_-]+(\[(\d+|\*)\])*)*$`)
)

// isEventSource is the pattern of an event's source, which needs to look ahead: it begins with one of some characters and not with "aws.", or is a path.
func isEventSource(s string) bool {
	if eventSourcePath.MatchString(s) {
		return true
	}
	return s != "" && (alphanumeric(s[0]) || strings.IndexByte("/.-_", s[0]) >= 0) && !strings.HasPrefix(s, "aws.") && !strings.ContainsAny(s, "\n\r\u0085\u2028\u2029")
}

// text checks a string that may be missing. A nil pattern is any.
func (s *shape) text(path string, v *string, least, most int, p *pattern) {
	if v == nil {
		return
	}
	if p != nil && !p.match(*v) {
		s.Pattern(path, *v, p.text)
	}
	s.Length(path, *v, least, most)
}

// needed checks a string that must be there.
func (s *shape) needed(path string, v *string, least, most int, p *pattern) {
	s.Required(path, v != nil)
	s.text(path, v, least, most, p)
}

// word checks a value of an enumeration that may be missing.
func (s *shape) word(path string, v *string, set []string) {
	if v != nil {
		s.Enum(path, *v, set)
	}
}

// number checks a number that may be missing.
func (s *shape) number(path string, v *int64, least, most int64) {
	if v != nil {
		s.Least(path, *v, least)
		s.Most(path, *v, most)
	}
}

// count checks how many elements a list has.
func (s *shape) count(path string, n, least, most int) {
	s.Count(path, n, least, most, func() string { return "[" + strconv.Itoa(n) + " elements]" })
}

func member(list string, i int) string { return list + "." + strconv.Itoa(i+1) + ".member" }

// The bounds that several operations have.
const (
	nameMax  = 64
	tokenMax = 64
)

func (s *shape) name(path string, v string) { s.text(path, &v, 1, nameMax, patternName) }

func (s *shape) nameIfAny(path string, v *string) { s.text(path, v, 1, nameMax, patternName) }

func (s *shape) token(v *string) { s.text("clientToken", v, 1, tokenMax, patternToken) }

// page checks how a list is asked for, and gives how many elements a page has.
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

// orElse is the value of a member, or what it is where it is missing.
func orElse[T any](v *T, otherwise T) T {
	if v == nil {
		return otherwise
	}
	return *v
}

func ref[T any](v T) *T { return &v }
