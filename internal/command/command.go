package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mayflydb/mayfly/internal/option"
)

// Program has the properties of a command line besides its commands.
type Program struct {
	Name string
	Help string // a sentence
	// prefix of environment variables: with "MAYFLY" the flag --max-age of make is also
	// MAYFLY_MAKE_MAX_AGE
	Env string
	Out io.Writer
	Err io.Writer
	// the time that flags such as --start "in 5m" count from; nil: such values are errors
	Now func() time.Time
}

// Command is a command, or the program itself, which is the root.
type Command struct {
	Name     string
	Help     string
	Flags    []*Parameter
	Children []*Command

	print     *Parameter // --print-config; nil: the command has no File
	arguments []*Parameter
	group     string // the heading under which the program's help lists it
	short     bool   // environment variables without its name set its flags too
	standard  *Command
	fields    reflect.Value // its struct
	filled    bool          // with the struct's fields
	self      any           // pointer to its struct
	cobra     *cobra.Command
	line      *line
}

// line is a command line: the program, and the command that the line selects.
type line struct {
	Program
	selected *Command
}

// helper is a command with a longer help text.
type helper interface{ Help() string }

// New returns the program that a struct declares; root is a pointer to it. A command gets
// its flags when Parse selects it, since a run needs one command only. New, Parse and Fill panic if the
// declaration is wrong.
func New(p Program, root any) *Command {
	c := newCommand(&line{Program: p}, p.Name, p.Help, reflect.ValueOf(root).Elem())
	c.fill()
	c.cobra.SetOut(p.Out)
	c.cobra.SetErr(p.Err)
	return c
}

func newCommand(l *line, name, help string, fields reflect.Value) *Command {
	c := &Command{Name: name, Help: help, fields: fields, self: fields.Addr().Interface(), line: l}
	c.cobra = &cobra.Command{
		Use: name, Short: help, SilenceErrors: true, SilenceUsage: true,
		Args: func(_ *cobra.Command, args []string) error { return c.setArguments(args) },
	}
	c.cobra.Flags().SortFlags = false
	c.cobra.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return c.flagError(err) })
	c.cobra.SetHelpFunc(func(asked *cobra.Command, _ []string) {
		if asked == c.cobra {
			c.writeHelp(l.Out)
		} else { // a command of cobra
			writeForeign(l.Out, asked)
		}
	})
	return c
}

// fill adds the command's own commands, arguments and flags.
func (c *Command) fill() {
	if c.filled {
		return
	}
	c.filled = true
	c.addFields(c.fields)
	if len(c.Children) == 0 { // cobra prints the help of the others
		c.cobra.Run = func(*cobra.Command, []string) { c.line.selected = c }
	}
}

// Fill adds the flags and arguments of the command and of all below it, and returns it.
func (c *Command) Fill() *Command {
	c.fill()
	for _, child := range c.Children {
		child.Fill()
	}
	return c
}

// Path returns the names of the command's parents and its own, without the program's.
func (c *Command) Path() string {
	_, path, _ := strings.Cut(c.cobra.CommandPath(), " ")
	return path
}

// help returns the command line that shows the command's help.
func (c *Command) help() string { return c.cobra.CommandPath() + " --help" }

// Struct returns a pointer to the struct that declares the command.
func (c *Command) Struct() any { return c.self }

func (c *Command) child(name string) *Command {
	for _, child := range c.Children {
		if child.Name == name {
			return child
		}
	}
	return nil
}

// addFields adds the commands, arguments and flags of a struct's fields.
func (c *Command) addFields(fields reflect.Value) {
	for i := range fields.NumField() {
		f, field := fields.Type().Field(i), fields.Field(i)
		name := cmp.Or(f.Tag.Get("name"), dashed(f.Name))
		p := &Parameter{Name: name, Help: f.Tag.Get("help"), field: field, tag: f.Tag, now: c.line.Now}
		switch {
		case f.Anonymous:
			c.addFields(field)
		case has(f.Tag, "cmd"):
			child := newCommand(c.line, name, p.Help, field)
			child.group = f.Tag.Get("group")
			child.short = f.Tag.Get("env") == "short"
			c.Children = append(c.Children, child)
			c.cobra.AddCommand(child.cobra)
			if f.Tag.Get("default") == "withargs" {
				c.standard = child
			}
		case has(f.Tag, "arg"):
			c.arguments = append(c.arguments, p)
			c.cobra.Flags().SetInterspersed(!has(f.Tag, "passthrough"))
		default:
			c.addFlag(p)
			if p.isFile() {
				c.addPrint()
			}
		}
	}
}

// Usage is an error in a command line.
type Usage struct {
	Next string // the next step; "" if the error is clear without

	error
}

func (u *Usage) Unwrap() error { return u.error }

func usage(format string, args ...any) *Usage { return &Usage{error: fmt.Errorf(format, args...)} }

// next adds the next step.
func (u *Usage) next(format string, args ...any) *Usage {
	u.Next = fmt.Sprintf(format, args...)
	return u
}

// asUsage returns an error as one of the command line.
func asUsage(err error) error {
	var u *Usage
	if err == nil || errors.As(err, &u) {
		return err
	}
	return &Usage{error: err}
}

// Parse parses a command line, sets the fields of the selected command's struct and returns a
// pointer to it. It returns nil if it has answered the line itself: a request for help or for the
// settings in effect, or only the name of a group of commands. Its errors are of type Usage, or come from writing the answer. A
// program parses one line.
func (c *Command) Parse(args []string) (command any, err error) {
	if args, err = c.complete(args); err != nil {
		return nil, err
	}
	c.cobra.SetArgs(args)
	if err := c.cobra.Execute(); err != nil {
		return nil, asUsage(err)
	}
	selected := c.line.selected
	if selected == nil {
		return nil, nil
	}
	if err := selected.settle(); err != nil || !selected.isPrinted() {
		return selected.self, asUsage(err)
	}
	return nil, selected.printConfig(c.line.Out)
}

// complete returns the arguments with the name of the default command, if none is named. It returns
// an error for an unknown command's name. Cobra would take it for an argument, or complain about
// the flags after it first.
func (c *Command) complete(args []string) ([]string, error) {
	root := c
	if len(args) > 0 {
		switch {
		case args[0] == "help": // cobra would show the program's help for an unknown command
			root.Fill()
			_, err := c.complete(args[1:])
			return args, err
		case args[0] == "completion":
			root.Fill()
			return args, checkShell(args[1:])
		case strings.HasPrefix(args[0], "__complete"):
			root.Fill()
			return args, nil
		}
	}
	at, word := 0, ""
	for ; at < len(args); at++ {
		child := c.child(args[at])
		if child == nil {
			word = args[at]
			break
		}
		c = child
		c.fill()
	}
	if len(c.Children) > 0 {
		root.Fill() // cobra may find a command behind flags
	}
	switch {
	case len(c.Children) > 0 && word != "" && word[0] != '-':
		return nil, c.noSuchCommand(word)
	case c.standard == nil || word == "-h" || word == "--help":
		return args, nil
	}
	return slices.Insert(slices.Clone(args), at, c.standard.Name), nil
}

// checkShell returns an error for a shell without completions, for which cobra would show the help.
func checkShell(names []string) error {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	if len(names) == 0 || strings.HasPrefix(names[0], "-") || slices.Contains(shells, names[0]) {
		return nil
	}
	e := usage("no completions for shell %q", names[0])
	return e.next("use one of %s", strings.Join(shells, ", "))
}

// setArguments sets the fields of arguments.
func (c *Command) setArguments(args []string) error {
	for _, a := range c.arguments {
		if len(args) == 0 {
			if has(a.tag, "optional") {
				return nil
			}
			return usage("missing argument %s", a.word()).next("%s", c.help())
		}
		words := args[:1]
		if a.isMultiple() {
			words = args
		}
		for i, text := range words {
			if err := a.set(text, i == 0); err != nil {
				return a.refuse(err, a.word(), "")
			}
		}
		args = args[len(words):]
	}
	if len(args) > 0 {
		return usage("unexpected argument %q", args[0]).next("%s", c.help())
	}
	return nil
}

// noSuchCommand returns the error for a command of c that does not exist. It suggests a command
// of c, or otherwise one at any depth below.
func (c *Command) noSuchCommand(name string) error {
	paths := c.paths(false)
	near := option.Nearest(name, slices.Collect(maps.Keys(paths)))
	if len(near) == 0 {
		paths = c.paths(true)
		near = option.Nearest(name, slices.Collect(maps.Keys(paths)))
	}
	var all []string
	for _, name := range near {
		all = append(all, paths[name]...)
	}
	return usage("unknown command %q", name).suggest(c, all)
}

// paths returns the full paths of the commands below c by their names.
func (c *Command) paths(deep bool) map[string][]string {
	all := map[string][]string{}
	for _, child := range c.Children {
		all[child.Name] = append(all[child.Name], child.cobra.CommandPath())
		if deep {
			for name, paths := range child.paths(true) {
				all[name] = append(all[name], paths...)
			}
		}
	}
	return all
}

// suggest adds the question whether the user meant one of a few names, or otherwise the command's
// help.
func (u *Usage) suggest(c *Command, names []string) *Usage {
	if len(names) == 0 || len(names) > 3 {
		return u.next("%s", c.help())
	}
	return u.next("did you mean %s?", strings.Join(names, " or "))
}

// word returns an argument's form in a usage line.
func (p *Parameter) word() string {
	text := "<" + p.Name + ">"
	if p.isMultiple() {
		text += " ..."
	}
	if has(p.tag, "optional") {
		text = "[" + text + "]"
	}
	return text
}
