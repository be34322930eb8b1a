package keyfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

// resolve sets a secret of an entry. It leaves commands to runCommands.
func (r *reader) resolve(e *entry, name string, secret *string) {
	for _, form := range e.forms(name) {
		s := e.settings[form]
		text := s.values[0].text
		complain := func(format string, args ...any) {
			r.complain(s.line, e.name+": "+form+": "+format, args...)
		}
		switch strings.TrimPrefix(form, name) {
		case "":
			*secret = text
		case "-env":
			value, set := r.options.Env(text)
			if !set || value == "" {
				complain("the environment variable %s is not set", text)
			}
			*secret = value
		case "-file":
			path := r.path(text)
			content, err := r.readFile(path, secretMax)
			line := strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r")
			switch {
			case err != nil:
				complain("%v", err)
			case line == "":
				complain("%s is empty", path)
			case strings.Contains(line, "\n"):
				complain("%s has several lines; it must have the secret alone", path)
			}
			warnReadable(r.options.Logger, path)
			*secret = line
		case "-command":
			c := command{secret: secret, complain: complain}
			for _, v := range s.values {
				c.args = append(c.args, v.text)
			}
			r.commands = append(r.commands, c)
		}
	}
}

// command prints a secret.
type command struct {
	args     []string
	secret   *string
	complain func(format string, args ...any)
}

// runCommands runs the commands of the file, several at once, and sets their secrets.
func (r *reader) runCommands(ctx context.Context) {
	errs := make([]error, len(r.commands))
	var wg sync.WaitGroup
	places := make(chan struct{}, commandsAtOnce)
	for i, c := range r.commands {
		wg.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			*c.secret, errs[i] = firstLine(ctx, c.args)
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			r.commands[i].complain("%v", err)
		}
	}
}

// errTooMuch is the error of a command that prints more than secretMax.
var errTooMuch = fmt.Errorf("prints more than %d bytes", secretMax)

// firstLine returns the first line that a command prints. The error has nothing of the output, which
// may be secret.
func firstLine(ctx context.Context, args []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.WaitDelay = time.Second // for a child of the command that keeps the output open
	var out limited
	c.Stdout = &out
	err := c.Run()
	line, _, _ := strings.Cut(out.b.String(), "\n")
	line = strings.TrimSuffix(line, "\r")
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "", fmt.Errorf("%s runs longer than %v", args[0], commandTimeout)
	case out.over: // err may be a broken pipe
		return "", fmt.Errorf("%s %w; it must print the secret alone", args[0], errTooMuch)
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("program %q not found on the PATH", args[0])
	case err != nil:
		return "", fmt.Errorf("%s failed: %w; run it by hand to see why", args[0], err)
	case line == "":
		return "", fmt.Errorf("%s prints nothing in its first line; it must print the secret", args[0])
	}
	return line, nil
}

// limited keeps at most secretMax bytes. It has no ReadFrom, with which io.Copy would pass Write by.
type limited struct {
	b    bytes.Buffer
	over bool // there was more
}

func (l *limited) Write(p []byte) (int, error) {
	if l.b.Len()+len(p) > secretMax {
		l.over = true
		return 0, errTooMuch
	}
	return l.b.Write(p)
}

// warnReadable warns of a file with secrets that other users can read.
func warnReadable(log *slog.Logger, path string) {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0 { // Windows reports no such rights
		return
	}
	log.Warn("other users of this machine can read a file with secrets", "file", path, "next", "chmod 600 "+path)
}
