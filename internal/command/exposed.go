package command

import (
	"fmt"
	"net/url"
	"strings"
)

// Exposed is a flag whose secret stands on the command line, where every user of the machine can
// read it for as long as the process runs.
type Exposed struct {
	Flag     string // --secret-key
	Instead  string // where the flag can be set instead, as a phrase
	Password bool   // the secret is the password in a URL
}

// Exposed returns the secrets on the line that Parse has parsed: the flags with the tag secret, and
// URLs with a password. Environment variables and files are readable by their owner only.
func (c *Command) Exposed() (all []Exposed) {
	if c.line.selected == nil {
		return nil
	}
	flags, file := c.line.selected.Flags, ""
	for _, f := range flags {
		if f.isFile() {
			file = ", or %s in the file of --" + f.Name
		}
	}
	for _, f := range flags {
		isSecret, hasPassword := has(f.tag, "secret"), hasPassword(f.field.Interface())
		if f.from != fromLine || f.field.IsZero() || !isSecret && !hasPassword {
			continue
		}
		instead := f.env + " in the environment"
		if file != "" {
			instead += fmt.Sprintf(file, f.Name)
		}
		all = append(all, Exposed{Flag: "--" + f.Name, Instead: instead, Password: !isSecret})
	}
	return all
}

// hasPassword reports whether a flag's value is a URL with a password, or a list with one.
func hasPassword(value any) bool {
	switch value := value.(type) {
	case string:
		u, err := url.Parse(value)
		if err != nil || u.User == nil || !strings.Contains(value, "://") {
			return false
		}
		_, has := u.User.Password()
		return has
	case []string:
		for _, one := range value {
			if hasPassword(one) {
				return true
			}
		}
	}
	return false
}
