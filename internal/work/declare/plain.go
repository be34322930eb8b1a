package declare

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Plain returns the complaints of a YAML decoder without its name and without Go's types. Those
// about values begin with "line 3: ", as the decoder's do.
func Plain(err error) []string {
	var several *yaml.TypeError
	if !errors.As(err, &several) {
		return []string{strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	// the decoder's wording; compiled here, because it is needed after a mistake only
	unknownSetting := regexp.MustCompile(`field (\S+) not found in type \S+`)
	wrongKind := regexp.MustCompile("^(line \\d+: )?cannot unmarshal !!(\\w+)(?: `(.*)`)? into (.+)$")
	all := make([]string, len(several.Errors))
	for i, text := range several.Errors {
		text = unknownSetting.ReplaceAllString(text, "unknown setting $1")
		if parts := wrongKind.FindStringSubmatch(text); parts != nil {
			found := strconv.Quote(parts[3])
			if parts[3] == "" { // the decoder shows only scalars
				found = kinds[parts[2]]
			}
			text = fmt.Sprintf("%s%s is not %s", parts[1], found, wanted(parts[4]))
		}
		all[i] = text
	}
	return all
}

// kinds are YAML's kinds of values.
var kinds = map[string]string{"map": "an object", "seq": "a list", "null": "null", "str": "a text"}

// wanted returns words for the values that a Go type accepts.
func wanted(goType string) string {
	switch {
	case goType == "time.Duration":
		return "a duration such as 90s or 2d"
	case strings.HasPrefix(goType, "int"), strings.HasPrefix(goType, "uint"):
		return "a whole number"
	case strings.HasPrefix(goType, "float"):
		return "a number"
	case goType == "bool":
		return "true or false"
	case goType == "string":
		return "a text"
	case strings.HasPrefix(goType, "[]"):
		return "a list"
	}
	return "an object with settings"
}
