// Package command declares a command line as structs. A field with the tag cmd is a command, one with arg an argument, and any other a flag, which can also be set in the
// environment and in a file. The command line itself is read by cobra, which completes it in shells, too.
//
//	type cli struct {
//		Serve serve `cmd:"" help:"Serve the API."`
//	}
//	type serve struct {
//		Config command.File `help:"File that sets any of these flags." placeholder:"FILE"`
//		Port   int          `help:"Port to listen on." default:"8000"` // --port, and MAYFLY_PORT
//		Name   string       `arg:"" help:"What to serve."`
//	}
//
// Tags:
//
//	cmd            a command, named as the field; default:"withargs": what its parent does where none of its commands is named
//	arg            an argument; optional: may be left out. A slice takes all that are left; passthrough: with their flags
//	name           instead of the field's name, which becomes max-age from MaxAge
//	help           a sentence
//	group          of a command of the program: the heading under which the program's help lists it
//	default        the value where nothing is set
//	enum           the values that there are, separated by commas
//	placeholder    what stands for the value in --help
//	required       it has to be set
//	short          one letter
//	negatable      of a switch: there is --no-name as well
//	sep            "none": a value of a slice may have commas in it
//	xor            a name: of all flags with this name one may be set; where they are required, one has to be
//	hidden         it is not in --help
//
// A command whose struct has a method Help() string shows it in --help.
//
// Flags rank above variables of the environment, these above the file, and that above defaults.
//
// The linker leaves out what a program cannot reach, unless some part of it looks methods up by names that are known only while it runs: then it keeps every exported method of
// every type. So this package finds what to call by interfaces, and never by reflection.
package command
