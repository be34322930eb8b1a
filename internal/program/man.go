package program

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mayflydb/mayfly/internal/command"
)

type manCommand struct {
	Command []string `arg:"" optional:"" help:"Names of the command, such as guard run. Default: the program."`
	Dir     string   `help:"Write the pages of all commands to this directory, which must exist." placeholder:"DIR"`
}

func (manCommand) Help() string {
	return `Examples:

    mayfly man guard run | man -l -
    mayfly man --dir /usr/local/share/man/man1

The deb and rpm packages install the pages: man mayfly-guard-run.`
}

// Run prints a page, or writes all.
func (c manCommand) Run(_ context.Context, s streams) error {
	root := command.New(command.Program{Name: programName, Help: programHelp, Env: programEnv}, parts.commands())
	chosen, err := root.Find(c.Command)
	switch {
	case err != nil:
		return misusedCommand(err)
	case c.Dir != "" && len(c.Command) > 0:
		return misused(fmt.Errorf("--dir %s is for the pages of all commands", c.Dir), "drop the name of the command, or --dir")
	case c.Dir == "":
		if _, isElsewhere := chosen.Struct().(*elsewhere); isElsewhere {
			return &missingPart{"mayfly man " + chosen.Name}
		}
		_, err := fmt.Fprint(s.out, chosen.Manual())
		return err
	case parts.Commands == nil:
		return &missingPart{"mayfly man --dir"}
	}
	for name, text := range root.Manuals() {
		if err := os.WriteFile(filepath.Join(c.Dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
