package template

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Path leads to an attribute, or to a value within one.
type Path []step

// step is the name of a map's member, or an index in a list.
type step struct {
	name  string
	index int // -1 for a name
}

// pathMax is the most steps of a path: the depth of the deepest item.
const pathMax = 32

// ParsePath parses a path: names separated by dots, indexes in brackets, and names in brackets and
// quotes, as in JSON: visit.times[0]["starts.at"].
func ParsePath(s string) (p Path, err error) {
	bad := fmt.Errorf(`invalid path %q; use the form a.b[0]["c.d"]`, s)
	for tail := s; tail != ""; {
		if len(p) == pathMax {
			return nil, fmt.Errorf("a path must not have more than %d steps", pathMax)
		}
		if inside, ok := strings.CutPrefix(tail, "["); ok {
			var next step
			if next, tail, ok = bracket(inside); !ok {
				return nil, bad
			}
			p = append(p, next)
			continue
		}
		if len(p) > 0 {
			var dot bool
			if tail, dot = strings.CutPrefix(tail, "."); !dot {
				return nil, bad
			}
		}
		end := strings.IndexAny(tail, ".[]")
		if end < 0 {
			end = len(tail)
		}
		if end == 0 {
			return nil, bad
		}
		p = append(p, step{tail[:end], -1})
		tail = tail[end:]
	}
	if len(p) == 0 || p[0].index >= 0 {
		return nil, bad
	}
	return p, nil
}

// bracket parses the text after an opening bracket.
func bracket(s string) (next step, tail string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		digits, tail, ok := strings.Cut(s, "]")
		n, err := strconv.ParseUint(digits, 10, 16)
		return step{"", int(n)}, tail, ok && err == nil
	}
	decoder := json.NewDecoder(strings.NewReader(s))
	if err := decoder.Decode(&next.name); err != nil {
		return next, "", false
	}
	next.index = -1
	tail, ok = strings.CutPrefix(s[decoder.InputOffset():], "]")
	return next, tail, ok && next.name != ""
}

// Of returns the value at the path, or nil if there is none.
func (p Path) Of(item map[string]types.AttributeValue) types.AttributeValue {
	var at types.AttributeValue = &types.AttributeValueMemberM{Value: item}
	for _, s := range p {
		switch v := at.(type) {
		case *types.AttributeValueMemberM:
			if s.index >= 0 {
				return nil
			}
			at = v.Value[s.name]
		case *types.AttributeValueMemberL:
			if s.index < 0 || s.index >= len(v.Value) {
				return nil
			}
			at = v.Value[s.index]
		default:
			return nil
		}
	}
	return at
}
