package program

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// confirm asks the user before a step that cannot be undone. Without a terminal, --yes is required.
func confirm(s streams, yes bool, what string) error {
	switch {
	case yes:
		return nil
	case asTerminal(os.Stdin) == nil:
		return misused(fmt.Errorf("%s: refusing without --yes, as there is no terminal to ask at", what), "add --yes")
	}
	fmt.Fprintf(s.err, "%s? [y/N] ", what)
	answer, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil && err != io.EOF {
		return fmt.Errorf("read the answer: %w", err)
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return errors.New("cancelled: nothing was changed")
	}
	return nil
}
