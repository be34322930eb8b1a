package program

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/backup"
)

type restoreCommand struct {
	From      string `help:"Directory or s3://bucket/prefix with backups." required:"" placeholder:"PLACE"`
	To        string `help:"Directory of the new database; it must be missing or empty." placeholder:"DIR"`
	Backup    string `help:"The backup, by the beginning of its name: 20300102 is the only one of that day. Default: the newest." placeholder:"NAME"`
	List      bool   `help:"List the backups."`
	Check     bool   `help:"Read every file of the backups, or of --backup, and compare it with its checksum. Nothing is restored."`
	Unchecked bool   `help:"Do not check the relations between items, indexes, deadlines and streams in the new directory."`
	JSON      bool   `name:"json" help:"Print JSON lines."`
	logFlags
}

func (restoreCommand) Help() string {
	return `Examples:

    mayfly restore --from /backups/orders --list
    mayfly restore --from /backups/orders --to ./restored
    mayfly restore --from s3://backups/orders --backup 20300102T1504 --to ./restored
    mayfly restore --from /backups/orders --check

Then start mayfly serve --data ./restored. The database continues as if it had been stopped when the backup was made: an item whose deadline
has passed since then is gone at the first read, and its removal follows in the stream. Every file is compared with its checksum. Exit codes: 0
restored, 3 the backup or the new directory is damaged, 1 the restore failed, 2 the command line is wrong.`
}

// Run restores, lists or checks backups.
func (c restoreCommand) Run(ctx context.Context, s streams) error {
	if err := c.check(); err != nil {
		return err
	}
	if err := needObjects(c.From); err != nil {
		return err
	}
	store, _, _, err := openPlace(ctx, c.From, c.logger(s.err))
	if err != nil {
		return misused(err, "mayfly restore --help")
	}
	r := backup.Open(store)
	switch {
	case c.List:
		err = c.list(ctx, s, r)
	case c.Check:
		err = c.checkFiles(ctx, s, r)
	default:
		err = c.restore(ctx, s, r)
	}
	return c.advise(err)
}

func (c restoreCommand) check() error {
	chosen := 0
	for _, set := range []bool{c.List, c.Check, c.To != ""} {
		if set {
			chosen++
		}
	}
	if chosen != 1 {
		return misused(errors.New("exactly one of --to, --list and --check is needed"), "for example: mayfly restore --from %s --to ./restored", c.From)
	}
	return nil
}

// snapshotJSON is a backup for --list --json.
type snapshotJSON struct {
	Backup string `json:"backup"`
	Taken  string `json:"taken"`
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
	Source string `json:"source"`
}

func (c restoreCommand) list(ctx context.Context, s streams, r backup.Repository) error {
	all, damaged, err := r.Snapshots(ctx)
	if err != nil {
		return err
	}
	for _, d := range damaged {
		fmt.Fprintf(s.err, "mayfly: %s\n", d)
	}
	if len(all) == 0 && !c.JSON {
		fmt.Fprintf(s.err, "mayfly: there is no backup in %s\n", c.From)
		return nil
	}
	t := table{heading: []string{"BACKUP", "TAKEN", "SIZE", "FILES", "DATABASE"}}
	for _, b := range all {
		taken := b.Taken.UTC().Format(time.RFC3339)
		if c.JSON {
			if err := writeJSON(s.out, snapshotJSON{b.ID, b.Taken.Format(time.RFC3339Nano), len(b.Files), b.Bytes(), b.Source}); err != nil {
				return err
			}
			continue
		}
		t.add(b.ID, taken, bytesText(b.Bytes()), fmt.Sprint(len(b.Files)), b.Source)
	}
	if c.JSON {
		return nil
	}
	return t.write(s.out)
}

// checkFiles reads the files of all backups, or of one.
func (c restoreCommand) checkFiles(ctx context.Context, s streams, r backup.Repository) error {
	var all []backup.Snapshot
	var damaged []*backup.Damaged
	var err error
	if c.Backup == "" {
		all, damaged, err = r.Snapshots(ctx)
	} else {
		all = make([]backup.Snapshot, 1)
		all[0], err = r.Find(ctx, c.Backup)
	}
	if err != nil {
		return err
	}
	b, faults := newBar(s.err), 0
	redraw := percent(b, "checking "+c.From)
	tell := func(d *backup.Damaged) {
		b.clear()
		faults++
		if c.JSON {
			_ = writeJSON(s.out, map[string]string{"file": d.Object, "fault": d.Fault})
		} else {
			fmt.Fprintln(s.out, d)
		}
	}
	for _, d := range damaged {
		tell(d)
	}
	err = r.Check(ctx, all, func(now backup.Progress) { redraw(now.Done, now.Total) }, tell)
	b.clear()
	switch {
	case err != nil:
		return err
	case c.JSON:
		if err := writeJSON(s.out, map[string]any{"backups": len(all), "sound": faults == 0, "faults": faults}); err != nil {
			return err
		}
	case faults == 0:
		fmt.Fprintf(s.out, "%s: no damage\n", counted(len(all), "backup"))
	}
	if faults == 0 {
		return nil
	}
	return &advised{error: fmt.Errorf("%s: %s", c.From, counted(faults, "fault")), exit: exitDamaged, next: "backups that need none of these files can be restored; make new ones in another place"}
}

func (c restoreCommand) restore(ctx context.Context, s streams, r backup.Repository) error {
	found, err := r.Find(ctx, c.Backup)
	if err != nil {
		return err
	}
	p := newProgress(s.err)
	err = r.Restore(ctx, found, c.To, func(now backup.Progress) {
		p.show(now.Done, now.Total, fmt.Sprintf("%s of %s", bytesText(now.Done), bytesText(now.Total)))
	})
	p.clear()
	if err != nil {
		return err
	}
	faults := faultList{s: streams{s.err, s.err}, bar: newBar(s.err)}
	if !c.Unchecked {
		if err := mayfly.Check(ctx, c.To, percent(faults.bar, "checking "+c.To), faults.add); err != nil {
			faults.end()
			return advise(fmt.Errorf("%s is restored, but could not be checked: %w", c.To, err), "mayfly check %s", c.To)
		}
		faults.end()
	}
	if c.JSON {
		err = writeJSON(s.out, map[string]any{"backup": found.ID, "to": c.To, "bytes": found.Bytes(), "seconds": p.took().Seconds(), "faults": faults.n, "checked": !c.Unchecked})
	} else {
		fmt.Fprintf(s.out, "restored %s to %s: %s; %s\n", found.ID, c.To, bytesText(found.Bytes()), p.took())
	}
	if err == nil && faults.n > 0 {
		return &advised{error: fmt.Errorf("%s is damaged, and was when the backup was made: %s", c.To, counted(faults.n, "fault")), exit: exitDamaged, next: "restore an earlier backup into another directory"}
	}
	return err
}

// advise adds a next step to the error of a restore.
func (c restoreCommand) advise(err error) error {
	var full *backup.NotEmpty
	var damaged *backup.Damaged
	switch {
	case err == nil || isAdvised(err):
		return err
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted; nothing is left of what was written")
	case errors.As(err, &full):
		return misused(err, "use a directory that is missing or empty, then start mayfly serve with it")
	case errors.Is(err, backup.ErrNone):
		return advise(err, "list them with: mayfly restore --list --from %s", c.From)
	case errors.As(err, &damaged):
		return &advised{error: fmt.Errorf("%s: %w", c.From, err), exit: exitDamaged, next: "try another backup of: mayfly restore --list --from " + c.From}
	}
	return err
}
