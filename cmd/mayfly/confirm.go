package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// confirm asks before something is done that cannot be undone. Where nobody sits at a terminal it has to be said beforehand, by --yes.
func confirm(s streams, yes bool, what string) error {
	switch {
	case yes:
		return nil
	case asTerminal(os.Stdin) == nil:
		return advise(fmt.Errorf("%s: nobody is there to be asked", what), "say --yes if that is meant")
	}
	fmt.Fprintf(s.err, "%s? [y/N] ", what)
	answer, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil && err != io.EOF {
		return fmt.Errorf("read the answer: %w", err)
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return errors.New("nothing was done")
	}
	return nil
}
