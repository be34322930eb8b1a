package command

import (
	"cmp"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/pflag"

	"github.com/mayflydb/mayfly/internal/option"
)

// addFlag adds a flag to the command line, and sets its field to the default.
func (c *Command) addFlag(f *Parameter) {
	c.nameVariables(f)
	f.Hidden = has(f.tag, "hidden")
	c.Flags = append(c.Flags, f)
	if f.standard() != "" {
		if err := f.set(f.standard(), true); err != nil {
			panic("the default of --" + f.Name + ": " + err.Error())
		}
	}
	flags := c.cobra.Flags()
	v := flags.VarPF((*lineValue)(f), f.Name, f.tag.Get("short"), f.Help)
	v.Hidden = f.Hidden
	if f.isSwitch() {
		v.NoOptDefVal = "true"
	}
	if has(f.tag, "negatable") {
		no := flags.VarPF(negation{(*lineValue)(f)}, "no-"+f.Name, "", f.Help)
		no.NoOptDefVal, no.Hidden = "true", true
	}
}

// nameVariables sets the environment variables of a flag: MAYFLY_MAKE_MAX_AGE, which has the
// command's path, the variables in the tag env, and MAYFLY_MAX_AGE if the command has short ones.
func (c *Command) nameVariables(f *Parameter) {
	add := func(words ...string) {
		name := strings.ToUpper(strings.Join(append([]string{c.line.Env}, words...), "_"))
		name = strings.NewReplacer("-", "_", " ", "_").Replace(name)
		if !slices.Contains(f.Env, name) {
			f.Env = append(f.Env, name)
		}
	}
	if path := c.Path(); path != "" {
		add(path, f.Name)
	} else {
		add(f.Name)
	}
	f.env = f.Env[0]
	for name := range strings.FieldsFuncSeq(f.tag.Get("env"), func(c rune) bool { return c == ',' }) {
		add(name)
		f.env = f.Env[1]
	}
	if c.short {
		add(f.Name)
	}
}

// dashed returns max-age for MaxAge and aws-endpoint for AWSEndpoint.
func dashed(name string) string {
	var out strings.Builder
	letters := []rune(name)
	for i, r := range letters {
		if i > 0 && unicode.IsUpper(r) &&
			(!unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1])) {
			out.WriteByte('-')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}

// lineValue is a flag as a value of pflag.
type lineValue Parameter

func (v *lineValue) Set(text string) error {
	first := v.from != fromLine
	v.from = fromLine
	return (*Parameter)(v).set(text, first)
}

func (v *lineValue) String() string { return "" }

func (v *lineValue) Type() string { return "value" }

// negation is --no-name.
type negation struct{ *lineValue }

func (n negation) Set(text string) error {
	if text != "true" {
		return errors.New("takes no value")
	}
	return n.lineValue.Set("false")
}

// flagError returns a clearer form of pflag's error.
func (c *Command) flagError(err error) error {
	var unknown *pflag.NotExistError
	var noValue *pflag.ValueRequiredError
	var wrong *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		if letters := unknown.GetSpecifiedShortnames(); letters != "" {
			return c.unknownFlag("-" + letters)
		}
		return c.unknownFlag("--" + unknown.GetSpecifiedName())
	case errors.As(err, &noValue):
		name := "--" + noValue.GetFlag().Name
		f := (*Parameter)(noValue.GetFlag().Value.(*lineValue))
		return usage("%s needs a value", name).next("%s", cmp.Or(f.example(name+"="), c.help()))
	case errors.As(err, &wrong):
		name := "--" + wrong.GetFlag().Name
		if v, ok := wrong.GetFlag().Value.(*lineValue); ok {
			return (*Parameter)(v).refuse(wrong.Unwrap(), name, name+"=")
		}
		return usage("%s %w", name, wrong.Unwrap()) // a negation
	}
	return usage("%w", err)
}

func (c *Command) unknownFlag(typed string) error {
	names := []string{"help"}
	// most programs have a flag --version; here it is a command
	if c.child("version") != nil {
		names = append(names, "version")
	}
	for _, f := range c.Flags {
		if was := f.tag.Get("was"); was != "" && typed == "--"+was {
			return usage("unknown flag %s", typed).suggest(c, []string{"--" + f.Name})
		}
		if !f.Hidden {
			names = append(names, f.Name)
		}
	}
	near := option.Nearest(strings.TrimLeft(typed, "-"), names)
	for i := range near {
		near[i] = "--" + near[i]
	}
	return usage("unknown flag %s", typed).suggest(c, near)
}

// settle sets flags from the environment, files and defaults, and checks them together.
func (c *Command) settle() error {
	for _, f := range c.Flags {
		variable, text := f.variable()
		if text == "" || f.from == fromLine {
			continue
		}
		f.from = fromEnvironment
		if err := f.set(text, true); err != nil {
			return f.refuse(err, "the environment variable "+variable, variable+"=")
		}
	}
	if err := c.readFile(); err != nil {
		return err
	}
	return c.checkSet()
}

// variable returns the first environment variable that sets the flag, with its text, or nothing. An
// empty variable counts as unset; files of containers often have some.
func (f *Parameter) variable() (name, text string) {
	for _, name := range f.Env {
		if text := os.Getenv(name); text != "" && !isServiceLink(name, text) {
			return name, text
		}
	}
	return "", ""
}

// isServiceLink reports whether an orchestrator set the variable, and not a user. For a service
// named mayfly, Kubernetes and Docker's links set MAYFLY_PORT=tcp://10.0.0.1:8000, and links also
// set MAYFLY_NAME=/client/mayfly. Their other variables have names that no flag has.
func isServiceLink(variable, text string) bool {
	switch {
	case strings.HasSuffix(variable, "_PORT"):
		protocol, _, isURL := strings.Cut(text, "://")
		return isURL && (protocol == "tcp" || protocol == "udp" || protocol == "sctp")
	case strings.HasSuffix(variable, "_NAME"):
		return strings.HasPrefix(text, "/")
	}
	return false
}

// alternatives returns the flags in groups of which at most one flag may be set. Most groups have
// one flag.
func (c *Command) alternatives() (groups [][]*Parameter) {
	for _, f := range c.Flags {
		name := f.tag.Get("xor")
		i := slices.IndexFunc(groups, func(group []*Parameter) bool {
			return name != "" && group[0].tag.Get("xor") == name
		})
		if i < 0 {
			groups = append(groups, []*Parameter{f})
		} else {
			groups[i] = append(groups[i], f)
		}
	}
	return groups
}

// checkSet returns an error for missing flags, and for flags that exclude each other.
func (c *Command) checkSet() error {
	var missing, helps []string
	for _, group := range c.alternatives() {
		var set, shown, help []string
		for _, f := range group {
			shown, help = append(shown, f.shown()), append(help, "--"+f.Name+" or "+f.env)
			if f.from != fromDefault {
				set = append(set, "--"+f.Name)
			}
		}
		switch {
		case len(set) > 1:
			return usage("%s cannot be used together", strings.Join(set, " and "))
		case len(set) == 0 && has(group[0].tag, "required"):
			missing = append(missing, strings.Join(shown, " or "))
			helps = append(helps, strings.Join(help, ", or "))
		}
	}
	plural := ""
	switch {
	case len(missing) == 0:
		return nil
	case len(missing) > 1:
		plural = "s"
	}
	e := usage("missing flag%s: %s", plural, strings.Join(missing, ", "))
	return e.next("set %s", strings.Join(helps, "; "))
}

// shown returns the flag's form in --help, such as --port=8000.
func (p *Parameter) shown() string {
	name := "--" + p.Name
	if has(p.tag, "negatable") {
		name = "--[no-]" + p.Name
	}
	if p.isSwitch() {
		return name
	}
	standard := p.standard()
	if t := p.element(); standard != "" && t.Kind() == reflect.String && !readsText(t) {
		standard = `"` + standard + `"`
	}
	text := cmp.Or(p.tag.Get("placeholder"), standard, strings.ToUpper(p.Name))
	if p.isList() {
		text += ",..."
	}
	return name + "=" + text
}
