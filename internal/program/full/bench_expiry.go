package full

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/mayflydb/mayfly/internal/bench"
	"github.com/mayflydb/mayfly/internal/bench/expirybench"
	"github.com/mayflydb/mayfly/internal/program"
	"github.com/mayflydb/mayfly/internal/sdk"
)

// runBenchExpiry scores the expiry of an endpoint and prints the report.
func runBenchExpiry(ctx context.Context, e sdk.Endpoint, flags program.BenchExpiryFlags, t program.Terminal) error {
	if flags.Page != "" { // a name that cannot be written must not show at the end only
		if err := writeFile(flags.Page, "page", func(io.Writer) error { return nil }); err != nil {
			return err
		}
	}
	version, commit := program.Version()
	report, err := expirybench.Run(ctx, expirybench.Options{
		Endpoint: e, Name: flags.Name, Configured: flags.Configured, AllowRemote: flags.AllowRemote, PID: flags.ServerPID, Start: flags.Start,
		Only: flags.Only, Items: flags.Items, Spread: flags.Spread, AtOnce: flags.AtOnce, Pending: flags.Pending, Renewals: flags.Renewals,
		Load: flags.Load, Wait: flags.Wait, Quick: flags.Quick, Version: version, Commit: commit,
		Progress: func(s bench.Step) { t.Step(s.Part, s.Total, s.Text, s.Result) },
	})
	t.Clear()
	if ctx.Err() != nil {
		return errors.New("interrupted; its tables are removed")
	}
	if report == nil {
		return adviseBench(err, "mayfly bench expiry --help")
	}
	report.Command = commandLine(os.Args[1:])
	page := writeFile(flags.Page, "page", report.WritePage)
	if flags.JSON {
		return errors.Join(indented(t.Out, report), page, err)
	}
	return errors.Join(report.WriteText(t.Out), page, err)
}

// commandLine returns the command that reproduces a run. Arguments with spaces or quotes have quotes for a shell.
func commandLine(args []string) string {
	line := "mayfly"
	for _, arg := range args {
		if strings.ContainsAny(arg, " '\"$;&|") || arg == "" {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		line += " " + arg
	}
	return line
}
