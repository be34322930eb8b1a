package program

import (
	"context"
	"time"
)

// TortureFlags are the flags of mayfly torture.
type TortureFlags struct {
	Seed     uint64         `help:"Seed of all decisions." default:"1"`
	For      *time.Duration `help:"Time after which no episode begins, also if --episodes asks for more. Range: 1s to 168h. Default: 1m; with --episodes or --episode no limit." placeholder:"TIME"`
	Episode  *int64         `help:"Run only this episode, to replay what it found. Default: all from 0 on." placeholder:"N"`
	Episodes *int           `help:"Number of episodes after which the run ends. Range: 1 to 1000000000. Default: no limit." placeholder:"N"`
	Workers  *int           `help:"Number of processes at once; each takes up to 1.3 GB of memory. Range: 1 to 256. Default: the number of CPUs." placeholder:"N"`
	JSON     bool           `name:"json" help:"Print the report as JSON."`

	Child bool `hidden:"" help:"Run the episode in this process."`
}

type tortureCommand struct{ TortureFlags }

func (tortureCommand) Help() string {
	return `Examples:

    mayfly torture
    mayfly torture --seed 7 --for 10m
    mayfly torture --seed 7 --episode 42
    mayfly torture --episodes 20 --workers 1 --json

An episode is 40 rounds of about a second of virtual time: a database on a simulated disk, clients that write, renew,
remove, read and transact, and a judge that compares each answer with the order of all changes. The power is cut, syncs
fail, the disk fills up, files are damaged between two starts, the server pauses, the machine's clock is set back, requests
and answers are late, lost and doubled. Nothing touches the real disk or network. docs/trust.md lists what is run and
judged, what is not, and what the runs covered.

A broken law is printed with the command that replays its episode. On Linux with an amd64 processor, where a process may
be traced (ptrace), the same program repeats it exactly and prints the same trace; elsewhere, the requests are the same but
goroutines may take another order. Another build is another program.

Exit code 1: a law was broken, or a process hung or was killed. Exit code 2: wrong flags.`
}

// Run runs the simulation and prints the report.
func (c tortureCommand) Run(ctx context.Context, s streams) error {
	return parts.Torture(ctx, c.TortureFlags, s.terminal())
}
