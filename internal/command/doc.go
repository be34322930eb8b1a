// Package command declares a command line as structs. A field with the tag cmd is a command, one
// with arg an argument, and any other a flag. Environment variables and a file can also set flags.
// Cobra parses the command line, and completes it in shells.
//
//	type cli struct {
//		Serve serve `cmd:"" help:"Serve the API."`
//	}
//
//	type serve struct {
//		Config command.File `help:"File that sets any of these flags." placeholder:"FILE"`
//		Port   int          `help:"Port to listen on." default:"8000"` // --port, and MAYFLY_SERVE_PORT
//		Name   string       `arg:"" help:"What to serve."`
//	}
//
// Tags:
//
//	cmd            a command with the field's name; default:"withargs": it runs if no command of its parent is named
//	arg            an argument; optional: may be left out. A slice takes all the others; passthrough: with their flags
//	name           instead of the field's name, which becomes max-age from MaxAge
//	help           a sentence
//	group          of a command of the program: the heading under which the program's help lists it
//	default        the value of a flag that is not set
//	enum           the allowed values, separated by commas
//	placeholder    the value's name in --help
//	required       the flag must be set
//	short          one letter
//	negatable      of a switch: --no-name exists too
//	env            of a flag: further environment variables, without the prefix, separated by commas; --help names
//	               the first. "short" of a command: variables without its name, such as MAYFLY_PORT, set its flags too
//	sep            "none": a value of a slice may contain commas
//	xor            a name: at most one of the flags with this name may be set; if they are required, exactly one
//	was            an earlier name of the flag; the error for it suggests the flag
//	hidden         --help leaves it out
//	secret         Exposed returns the flag if the command line sets it
//
// Flags of type time.Duration and time.Time have the syntax of package when; a time without a zone is
// in UTC.
//
// A command whose struct has a method Help() string shows it in --help.
//
// Flags override environment variables, these override the file, and the file overrides defaults.
//
// The linker leaves out unreachable methods, unless some part of the program looks methods up by
// names known only at run time. Then it keeps every exported method of every type. So this package
// calls methods through interfaces, and never through reflection.
package command
