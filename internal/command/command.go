package command

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Program has the properties of a command line besides its commands.
type Program struct {
	Name string
	Help string // a sentence
	// prefix of environment variables: with "MAYFLY" the flag --max-age is also MAYFLY_MAX_AGE
	Env string
	Out io.Writer
	Err io.Writer
}

// Command is a command, or the program itself, which is the root.
type Command struct {
	Name      string
	Help      string
	Flags     []*Flag
	Arguments []*Argument
	Children  []*Command
	Group     string // the heading under which the program's help lists it

	program  *Program
	parent   *Command
	standard *Command // the child that runs if none is named
	self     any      // pointer to its struct
	cobra    *cobra.Command
}

// Argument is an argument of a command.
type Argument struct {
	Name string
	Help string

	optional    bool
	passthrough bool
	value       value
}

// helper is a command with a longer help text.
type helper interface{ Help() string }

// New returns the program that a struct declares; root is a pointer to it. New panics if the
// declaration is wrong.
func New(p Program, root any) *Command {
	c := &Command{Name: p.Name, Help: p.Help, program: &p, self: root}
	c.read(reflect.ValueOf(root).Elem())
	return c
}

// Path returns the names of the command's parents and its own, without the program's.
func (c *Command) Path() string {
	if c.parent == nil {
		return ""
	}
	return strings.TrimSpace(c.parent.Path() + " " + c.Name)
}

// Struct returns a pointer to the struct that declares the command.
func (c *Command) Struct() any { return c.self }

// fullPath returns the path with the program's name.
func (c *Command) fullPath() string { return strings.TrimSpace(c.root().Name + " " + c.Path()) }

func (c *Command) root() *Command {
	for c.parent != nil {
		c = c.parent
	}
	return c
}

func (c *Command) child(name string) *Command {
	for _, child := range c.Children {
		if child.Name == name {
			return child
		}
	}
	return nil
}

// read adds the commands, arguments and flags of a struct's fields.
func (c *Command) read(of reflect.Value) {
	for i := range of.NumField() {
		f := of.Type().Field(i)
		tag := f.Tag
		name := tag.Get("name")
		if name == "" {
			name = dashed(f.Name)
		}
		_, isCommand := tag.Lookup("cmd")
		_, isArgument := tag.Lookup("arg")
		switch {
		case f.Anonymous:
			c.read(of.Field(i))
		case isCommand:
			child := &Command{Name: name, Help: tag.Get("help"), Group: tag.Get("group"), program: c.program, parent: c, self: of.Field(i).Addr().Interface()}
			child.read(of.Field(i))
			c.Children = append(c.Children, child)
			if tag.Get("default") == "withargs" {
				c.standard = child
			}
		case isArgument:
			_, optional := tag.Lookup("optional")
			_, all := tag.Lookup("passthrough")
			c.Arguments = append(c.Arguments, &Argument{Name: name, Help: tag.Get("help"), optional: optional, passthrough: all, value: newValue(of.Field(i), tag)})
		default:
			c.Flags = append(c.Flags, newFlag(c, name, of.Field(i), tag))
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

// Parse parses a command line, sets the fields of the selected command's struct and returns a
// pointer to it. It returns nil if it has answered the line itself: a request for help, or only the
// name of a group of commands. Its errors are of type Usage, or come from writing the answer.
func (c *Command) Parse(args []string) (command any, err error) {
	if err := c.checkNames(args); err != nil {
		return nil, err
	}
	var selected *Command
	top := c.build(&selected)
	top.SetOut(c.program.Out)
	top.SetErr(c.program.Err)
	top.SetArgs(c.withStandard(args))
	if err := top.Execute(); err != nil {
		var u *Usage
		if !errors.As(err, &u) {
			err = &Usage{error: err}
		}
		return nil, err
	}
	if selected == nil {
		return nil, nil
	}
	return selected.self, selected.settle()
}

// checkNames returns an error for an unknown command's name. Cobra would take it for an argument,
// or complain about the flags after it first.
func (c *Command) checkNames(args []string) error {
	if c.parent == nil && len(args) > 1 {
		switch args[0] {
		case "help": // cobra would show the program's help for an unknown command
			args = args[1:]
		case "completion":
			return c.checkShell(args[1])
		}
	}
	for _, word := range args {
		child := c.child(word)
		if child != nil {
			c = child
			continue
		}
		named := len(c.Children) > 0 && (c.standard == nil || len(c.standard.Arguments) == 0)
		if !named || strings.HasPrefix(word, "-") || word == "" || c.parent == nil && (strings.HasPrefix(word, "__complete") || word == "help" || word == "completion") {
			return nil
		}
		return c.noSuchCommand(word)
	}
	return nil
}

// checkShell returns an error for a shell without completions, for which cobra would show the help.
func (c *Command) checkShell(name string) error {
	if shells := []string{"bash", "zsh", "fish", "powershell"}; !strings.HasPrefix(name, "-") && !slices.Contains(shells, name) {
		return usage("no completions for shell %q", name).next("use one of %s", strings.Join(shells, ", "))
	}
	return nil
}

// withStandard returns the arguments with the name of the default command, if none is named.
func (c *Command) withStandard(args []string) []string {
	for i := 0; ; i++ {
		next := ""
		if i < len(args) {
			next = args[i]
		}
		if child := c.child(next); child != nil {
			c = child
			continue
		}
		if c.standard == nil || next == "-h" || next == "--help" {
			return args
		}
		return slices.Insert(slices.Clone(args), i, c.standard.Name)
	}
}

// build returns cobra's form of the commands.
func (c *Command) build(selected **Command) *cobra.Command {
	b := &cobra.Command{
		Use: c.Name, Short: c.Help, SilenceErrors: true, SilenceUsage: true,
		Args: func(_ *cobra.Command, args []string) error { return c.takeArguments(args) },
		RunE: func(*cobra.Command, []string) error {
			if len(c.Children) > 0 {
				c.writeHelp(c.program.Out)
				return nil
			}
			*selected = c
			return nil
		},
	}
	c.cobra = b
	b.Flags().SortFlags = false
	for _, f := range c.Flags {
		f.register(b.Flags())
	}
	for _, a := range c.Arguments {
		if a.passthrough {
			b.Flags().SetInterspersed(false)
		}
	}
	b.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return c.flagError(err) })
	b.SetHelpFunc(func(asked *cobra.Command, _ []string) {
		if asked == b {
			c.writeHelp(c.program.Out)
		} else { // a command of cobra
			writeForeign(c.program.Out, asked)
		}
	})
	for _, child := range c.Children {
		b.AddCommand(child.build(selected))
	}
	return b
}

// takeArguments sets the fields of arguments.
func (c *Command) takeArguments(args []string) error {
	for _, a := range c.Arguments {
		if len(args) == 0 {
			if a.optional {
				return nil
			}
			return usage("missing argument %s", a).next("%s --help", c.fullPath())
		}
		words := args[:1]
		if a.value.many() {
			words = args
		}
		for i, text := range words {
			if err := a.value.set(text, i == 0); err != nil {
				return usage("%s: %w", a, err).next("%s", a.value.example("", ""))
			}
		}
		args = args[len(words):]
	}
	if len(args) > 0 {
		return usage("unexpected argument %q", args[0]).next("%s --help", c.fullPath())
	}
	return nil
}

// noSuchCommand is the error for a command of c that does not exist.
func (c *Command) noSuchCommand(name string) error {
	var names []string
	for _, child := range c.Children {
		names = append(names, child.Name)
	}
	near := nearest(name, names)
	for i := range near {
		near[i] = c.fullPath() + " " + near[i]
	}
	if len(near) == 0 {
		near = c.below(name)
	}
	e := usage("unknown command %q", name)
	if len(near) == 0 || len(near) > 3 {
		return e.next("%s --help", c.fullPath())
	}
	return e.next("did you mean %s?", strings.Join(near, " or "))
}

// below returns the full paths of the commands anywhere below c whose names are nearest to a mistyped one.
func (c *Command) below(name string) (near []string) {
	paths := map[string][]string{}
	var collect func(*Command)
	collect = func(c *Command) {
		for _, child := range c.Children {
			paths[child.Name] = append(paths[child.Name], child.fullPath())
			collect(child)
		}
	}
	collect(c)
	for _, name := range nearest(name, slices.Collect(maps.Keys(paths))) {
		near = append(near, paths[name]...)
	}
	return near
}

// String returns the argument's form in a usage line.
func (a *Argument) String() string {
	text := "<" + a.Name + ">"
	if a.value.many() {
		text += " ..."
	}
	if a.optional {
		text = "[" + text + "]"
	}
	return text
}
