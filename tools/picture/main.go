// Picture runs a program in a terminal and writes an animated SVG of its screen.
//
//	go run ./tools/picture -o docs/demo.svg go run ./cmd/mayfly demo --items 5000 --spread 8s --exit
//
// The program gets a terminal of -columns columns. The picture shows its first -rows rows, in real
// time, and repeats. It begins with the last screen, so that it makes sense where nothing moves.
//
// terminal.go turns the program's output into screens, and svg.go turns screens into a picture. The
// asciinema tools do both, but need Python or Rust, and their pictures draw bars with the reader's
// fonts, which leave gaps.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("picture", flag.ExitOnError)
	out := flags.String("o", "picture.svg", "write the picture to this `file`")
	columns := flags.Int("columns", 100, "columns of the terminal")
	rows := flags.Int("rows", 26, "rows that the picture shows")
	every := flags.Duration("every", 250*time.Millisecond, "time between two screens")
	hold := flags.Duration("hold", 3*time.Second, "how long the last screen stays")
	if err := flags.Parse(args); err != nil {
		return err
	}
	command := flags.Args()
	if len(command) == 0 || *columns < 1 || *rows < 1 || *every <= 0 || *hold <= 0 {
		return fmt.Errorf("usage: picture [flags] command [argument ...], with positive numbers")
	}
	output, err := record(ctx, command, *columns)
	if err != nil {
		return fmt.Errorf("%s: %w", strings.Join(command, " "), err)
	}
	screens, err := screensOf(output, *columns, *every)
	if err != nil {
		return err
	}
	f := film{
		command: strings.Join(command, " "),
		note:    fmt.Sprintf("recorded on %s by: go run ./tools/picture %s", clock.New().Now().Format(time.DateOnly), strings.Join(args, " ")),
		columns: *columns,
		rows:    *rows,
		frames:  framesOf(screens, *every, *hold),
	}
	return os.WriteFile(*out, f.svg(), 0o644)
}
