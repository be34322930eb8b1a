package program

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/command"
)

// Every command and every flag has a help text, and every command an example.
func TestEveryCommandShowsExamples(t *testing.T) {
	count := 0
	var look func(*command.Command)
	look = func(n *command.Command) {
		for _, child := range n.Children {
			count++
			words := strings.Fields(child.Path())
			var out, wrong bytes.Buffer
			if code := run(context.Background(), append(words, "--help"), &out, &wrong); code != exitOK {
				t.Errorf("%s --help exits with %d: %s", child.Path(), code, wrong.String())
			}
			if !strings.Contains(out.String(), "Example") || !strings.Contains(out.String(), "    mayfly "+child.Path()) {
				t.Errorf("%s --help shows no example of it", child.Path())
			}
			for _, flag := range child.Flags {
				if flag.Help == "" && !flag.Hidden {
					t.Errorf("%s: --%s says nothing", child.Path(), flag.Name)
				}
			}
			if _, runs := child.Struct().(runner); runs != (len(child.Children) == 0) {
				t.Errorf("%s: runs is %t, with %d commands below it", child.Path(), runs, len(child.Children))
			}
			look(child)
		}
	}
	look(command.New(command.Program{Name: "mayfly", Env: "MAYFLY"}, &cli{}).Fill())
	if count < 20 {
		t.Errorf("looked at %d commands only", count)
	}
}
