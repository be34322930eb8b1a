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
)

// Flag is a flag of a command.
type Flag struct {
	Name   string
	Help   string
	Hidden bool
	Env    string // environment variable

	short       string
	placeholder string
	standard    string // its default
	required    bool
	negatable   bool
	xor         string
	value       value
	from        source
}

// source is the origin of a flag's value. Later ones override earlier ones.
type source int

const (
	fromDefault source = iota
	fromFile
	fromEnvironment
	fromLine
)

func newFlag(c *Command, name string, of reflect.Value, tag reflect.StructTag) *Flag {
	has := func(name string) bool { _, there := tag.Lookup(name); return there }
	return &Flag{
		Name: name, Help: tag.Get("help"), Hidden: has("hidden"), Env: c.program.Env + "_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")), short: tag.Get("short"),
		placeholder: tag.Get("placeholder"), standard: tag.Get("default"), required: has("required"), negatable: has("negatable"), xor: tag.Get("xor"), value: newValue(of, tag),
	}
}

// dashed returns max-age for MaxAge and aws-endpoint for AWSEndpoint.
func dashed(name string) string {
	var out strings.Builder
	letters := []rune(name)
	for i, r := range letters {
		begins := i > 0 && unicode.IsUpper(r) && (!unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1]))
		if begins {
			out.WriteByte('-')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}

// register adds the flag to pflag's set.
func (f *Flag) register(flags *pflag.FlagSet) {
	if f.standard != "" {
		if err := f.value.set(f.standard, true); err != nil {
			panic("the default of --" + f.Name + ": " + err.Error())
		}
	}
	v := flags.VarPF(&lineValue{flag: f}, f.Name, f.short, f.Help)
	v.Hidden = f.Hidden
	if f.value.isSwitch() {
		v.NoOptDefVal = "true"
		if f.negatable {
			no := flags.VarPF(&lineValue{flag: f, not: true}, "no-"+f.Name, "", f.Help)
			no.NoOptDefVal, no.Hidden = "true", true
		}
	}
}

// lineValue is the flag as a value of pflag.
type lineValue struct {
	flag *Flag
	not  bool
}

func (v *lineValue) Set(text string) error {
	if v.not {
		if text != "true" {
			return errors.New("takes no value")
		}
		text = "false"
	}
	first := v.flag.from != fromLine
	v.flag.from = fromLine
	return v.flag.value.set(text, first)
}

func (v *lineValue) String() string { return "" }

func (v *lineValue) Type() string { return "value" }

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
		f := c.flag(noValue.GetFlag().Name)
		return usage("--%s needs a value", f.Name).next("%s", cmp.Or(f.value.example("--"+f.Name+"=", f.standard), c.fullPath()+" --help"))
	case errors.As(err, &wrong):
		name := wrong.GetFlag().Name
		if f := c.flag(name); f != nil { // exclude --no-name
			return usage("--%s: %w", name, wrong.Unwrap()).next("%s", f.value.example("--"+name+"=", f.standard))
		}
		return usage("--%s %w", name, wrong.Unwrap())
	}
	return usage("%w", err)
}

func (c *Command) unknownFlag(typed string) error {
	names := []string{"help"}
	// most programs have a flag --version; here it is a command
	if c.parent == nil && c.child("version") != nil {
		names = append(names, "version")
	}
	for _, f := range c.Flags {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	}
	e := usage("unknown flag %s", typed)
	near := nearest(strings.TrimLeft(typed, "-"), names)
	if len(near) == 0 || len(near) > 3 {
		return e.next("%s --help", c.fullPath())
	}
	return e.next("did you mean --%s?", strings.Join(near, " or --"))
}

func (c *Command) flag(name string) *Flag {
	for _, f := range c.Flags {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// settle sets flags from the environment, files and defaults, and checks them together.
func (c *Command) settle() error {
	for _, f := range c.Flags {
		text := os.Getenv(f.Env)
		// an empty variable counts as unset; files of containers often have some
		if text == "" || f.from == fromLine || isServiceLink(f.Env, text) {
			continue
		}
		f.from = fromEnvironment
		if err := f.value.set(text, true); err != nil {
			return usage("the environment variable %s: %w", f.Env, err).next("%s", f.value.example(f.Env+"=", f.standard))
		}
	}
	if err := c.readFiles(); err != nil {
		var u *Usage
		if errors.As(err, &u) {
			return u
		}
		return &Usage{error: err}
	}
	return c.checkSet()
}

// isServiceLink reports whether an orchestrator set the variable, and not a user. For a service named
// mayfly, Kubernetes and Docker's links set MAYFLY_PORT=tcp://10.0.0.1:8000, and links also set
// MAYFLY_NAME=/client/mayfly. Their other variables have names that no flag has.
func isServiceLink(variable, text string) bool {
	switch {
	case strings.HasSuffix(variable, "_PORT"):
		protocol, _, is := strings.Cut(text, "://")
		return is && (protocol == "tcp" || protocol == "udp" || protocol == "sctp")
	case strings.HasSuffix(variable, "_NAME"):
		return strings.HasPrefix(text, "/")
	}
	return false
}

// checkSet returns an error for missing flags, and for flags that exclude each other.
func (c *Command) checkSet() error {
	var missing, helps, groups []string
	for _, f := range c.Flags {
		if f.xor != "" && !slices.Contains(groups, f.xor) {
			groups = append(groups, f.xor)
		}
		if f.xor == "" && f.required && f.from == fromDefault {
			missing, helps = append(missing, f.shown()), append(helps, "--"+f.Name+" or "+f.Env)
		}
	}
	for _, name := range groups {
		var set, all, help []string
		required := false
		for _, f := range c.Flags {
			if f.xor != name {
				continue
			}
			required = required || f.required
			all, help = append(all, f.shown()), append(help, "--"+f.Name+" or "+f.Env)
			if f.from != fromDefault {
				set = append(set, "--"+f.Name)
			}
		}
		if len(set) > 1 {
			return usage("%s cannot be used together", strings.Join(set, " and "))
		}
		if required && len(set) == 0 {
			missing, helps = append(missing, strings.Join(all, " or ")), append(helps, strings.Join(help, ", or "))
		}
	}
	switch len(missing) {
	case 0:
		return nil
	case 1:
		return usage("missing flag: %s", missing[0]).next("set %s", helps[0])
	}
	return usage("missing flags: %s", strings.Join(missing, ", ")).next("set %s", strings.Join(helps, "; "))
}

// shown returns the flag's form in --help, such as --port=8000.
func (f *Flag) shown() string {
	name := "--" + f.Name
	if f.negatable {
		name = "--[no-]" + f.Name
	}
	if f.value.isSwitch() {
		return name
	}
	text := f.placeholder
	switch {
	case text != "":
	case f.standard != "" && f.value.isText():
		text = `"` + f.standard + `"`
	case f.standard != "":
		text = f.standard
	default:
		text = strings.ToUpper(f.Name)
	}
	if f.value.of.Kind() == reflect.Slice && f.value.many() && f.value.sep != "" {
		text += ",..."
	}
	return name + "=" + text
}
