package program

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"syscall"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/backup"
)

type backupCommand struct {
	To    string `help:"Directory or s3://bucket/prefix with the backups of one database." required:"" placeholder:"PLACE"`
	Data  string `help:"Directory of a database that no server uses, in place of the server at --endpoint." placeholder:"DIR"`
	Every *span  `help:"Go on: make a backup each time that this has passed." placeholder:"TIME"`
	Keep  int    `help:"Remove all but the newest backups of this database, so many. 0 keeps all." placeholder:"N"`
	JSON  bool   `name:"json" help:"Print each backup as a JSON line."`
	endpointFlags
	logFlags
}

func (backupCommand) Help() string {
	return `Examples:

    mayfly backup --to /backups/orders
    mayfly backup --to s3://backups/orders --every 1h --keep 24
    mayfly backup --data ./data --to /backups/orders

The server continues while it is backed up, and writers do not wait. A backup has every write that was acknowledged before it began, and no
later part of one. Files that an earlier backup has are not copied again. Everything written is read again. If the server has access keys, yours
must allow mayfly:Backup. See mayfly restore.`
}

// backupEveryLeast bounds the interval of --every.
const backupEveryLeast = time.Second

func (c backupCommand) check() error {
	switch {
	case c.Keep < 0:
		return misused(fmt.Errorf("--keep %d is negative", c.Keep), "for example --keep 24; 0 keeps all")
	case c.Every != nil && time.Duration(*c.Every) < backupEveryLeast:
		return misused(fmt.Errorf("--every %s is less than a second", time.Duration(*c.Every)), "for example --every 1h")
	case c.Data == "" && c.url("DYNAMODB") == endpointAWS:
		return misused(errors.New("mayfly cannot back up Amazon's service"), "copy a table to files with mayfly export")
	}
	return nil
}

// backingUp is a database and the place of its backups.
type backingUp struct {
	backupCommand
	repository backup.Repository
	endpoint   *endpoint // nil: a directory
	source     string
	s          streams
}

// Run makes a backup, or one after the other.
func (c backupCommand) Run(ctx context.Context, s streams) error {
	if err := c.check(); err != nil {
		return err
	}
	if err := needObjects(c.To); err != nil {
		return err
	}
	b := backingUp{backupCommand: c, s: s}
	store, _, _, err := openPlace(ctx, c.To, c.logger(s.err))
	if err != nil {
		return misused(err, "mayfly backup --help")
	}
	b.repository = backup.Open(store)
	if c.Data != "" {
		if b.source, err = filepath.Abs(c.Data); err != nil {
			return err
		}
	} else {
		if b.endpoint, err = c.connect(ctx, "DYNAMODB"); err != nil {
			return err
		}
		b.source = b.endpoint.URL
	}
	if c.Every == nil {
		return b.once(ctx)
	}
	return b.repeat(ctx, time.Duration(*c.Every))
}

// repeat makes backups until ctx is done. One that fails is reported, and the next is made all the
// same, unless the first fails because of the command line.
func (b backingUp) repeat(ctx context.Context, every time.Duration) error {
	for next := time.Now(); ; {
		err := b.once(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if code := report(b.s.err, err); code == exitUsage {
			return &advised{error: errors.New("no backup is possible"), exit: exitUsage}
		}
		for !next.After(time.Now()) {
			next = next.Add(every)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(next)):
		}
	}
}

// backupReport is a backup as JSON.
type backupReport struct {
	Backup   string  `json:"backup"`
	Taken    string  `json:"taken"`
	Files    int     `json:"files"`
	Bytes    int64   `json:"bytes"`
	NewFiles int     `json:"new_files"`
	NewBytes int64   `json:"new_bytes"`
	Removed  int     `json:"removed"`
	Seconds  float64 `json:"seconds"`
}

// once makes a backup and prints it.
func (b backingUp) once(ctx context.Context) error {
	p := newProgress(b.s.err)
	added, removed, err := b.repository.Take(ctx, backup.Take{
		Stream: b.stream, Source: b.source, Keep: b.Keep, Now: time.Now,
		Progress: func(now backup.Progress) {
			p.show(now.Done, now.Total, fmt.Sprintf("%s of %s", bytesText(now.Done), bytesText(now.Total)))
		},
	})
	p.clear()
	if added.ID == "" {
		return b.advise(ctx, err)
	}
	if b.JSON {
		printed := writeJSON(b.s.out, backupReport{
			added.ID, added.Taken.Format(time.RFC3339Nano), len(added.Files), added.Bytes(), added.NewFiles, added.NewBytes, removed, p.took().Seconds(),
		})
		return cmp.Or(b.advise(ctx, unpruned(err)), printed)
	}
	fmt.Fprintf(b.s.out, "%s: %s in %s; %s in %s are new; %s\n", added.ID, bytesText(added.Bytes()), counted(len(added.Files), "file"),
		bytesText(added.NewBytes), counted(added.NewFiles, "file"), p.took())
	if removed > 0 {
		fmt.Fprintf(b.s.out, "removed %s\n", counted(removed, "older backup"))
	}
	return b.advise(ctx, unpruned(err))
}

// unpruned says that an error came after the backup was made.
func unpruned(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the backup is complete, but older ones and unused files were not removed: %w", err)
}

// bytesText returns a size in decimal units.
func bytesText(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.2f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1f KB", float64(n)/1e3)
	}
	return fmt.Sprintf("%d bytes", n)
}

// stream begins a backup of the database, without the files that the repository has.
func (b backingUp) stream(ctx context.Context, has []backup.File) (io.ReadCloser, error) {
	if b.endpoint == nil {
		return backup.Pipe(func(w io.Writer) error { return mayfly.WriteBackup(ctx, b.Data, w, has) }), nil
	}
	body, err := json.Marshal(map[string]any{"has": has})
	if err != nil {
		return nil, err
	}
	answer, err := b.endpoint.Ask(ctx, http.MethodPost, "/_mayfly/backup", body, time.Now())
	if err != nil {
		return nil, b.endpoint.advise(err)
	}
	if answer.StatusCode == http.StatusOK && answer.Header.Get("Content-Type") == "application/x-tar" {
		return answer.Body, nil
	}
	defer answer.Body.Close()
	return nil, b.endpoint.refusedBackup(answer)
}

// refusedBackup returns the error of a server that sent no backup.
func (e *endpoint) refusedBackup(answer *http.Response) error {
	var refused struct {
		Error   string `json:"error"`   // of mayfly's own paths
		Message string `json:"message"` // of the API
		Upper   string `json:"Message"`
	}
	err := json.NewDecoder(io.LimitReader(answer.Body, 64<<10)).Decode(&refused)
	text := refused.Error + refused.Message + refused.Upper
	if err != nil || text == "" {
		text = "it answered " + answer.Status
	}
	switch answer.StatusCode {
	case http.StatusConflict:
		return advise(fmt.Errorf("%s: %s", e.name(), text), "wait until it has ended")
	case http.StatusBadRequest, http.StatusForbidden, http.StatusUnauthorized:
		return advise(fmt.Errorf("%s refuses to send a backup: %s", e.name(), text),
			"set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to a key of the server that allows mayfly:Backup")
	case http.StatusNotFound:
		return advise(fmt.Errorf("%s is no mayfly server, or an old one: %s", e.name(), text), "copy a table of another endpoint to files with mayfly export")
	}
	return fmt.Errorf("%s sends no backup: %s", e.name(), text)
}

// advise adds a next step to the error of a backup.
func (b backingUp) advise(ctx context.Context, err error) error {
	var other *backup.Locked
	var damaged *backup.Damaged
	switch {
	case err == nil || isAdvised(err):
		return err
	case ctx.Err() != nil:
		return errors.New("interrupted; the next backup continues with the files that have arrived")
	case errors.As(err, &other):
		return advise(fmt.Errorf("%s: %w", b.To, err), "wait until it has ended; if it was killed, its lock ends 15 minutes after that time")
	case errors.As(err, &damaged):
		return &advised{error: fmt.Errorf("%s: %w", b.To, err), exit: exitDamaged, next: "make backups in another place, and find what is left with: mayfly restore --check --from " + b.To}
	case b.Data != "" && errors.Is(err, mayfly.ErrLocked):
		return advise(err, "back up the server that uses %s: use --endpoint with its address in place of --data", b.Data)
	case b.Data != "" && errors.Is(err, mayfly.ErrDamaged):
		return &advised{error: err, exit: exitDamaged, next: "restore an earlier backup, or copy the readable part with: mayfly salvage " + b.Data + " --to NEW"}
	case b.Data != "" && !errors.Is(err, syscall.ENOSPC):
		return adviseOffline(err, b.Data)
	case errors.Is(err, syscall.ENOSPC):
		return advise(fmt.Errorf("%s is full: %w", b.To, err), "make room, or remove older backups with --keep")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return advise(fmt.Errorf("%s ended the backup before its end: %w", b.endpoint.name(), err), "see the server's log; the next backup continues with the files that have arrived")
	}
	return err
}
