package console

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/when"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/retry"
	"github.com/mayflydb/mayfly/internal/work/transfer"
)

const (
	importItems   = 50_000
	importLong    = 10 * time.Minute
	importAtOnce  = 4       // batches
	importedBytes = 1 << 20 // of the lines of a batch; values take up to ten times as much in memory
)

// showImport shows the form that imports a file.
func showImport(ctx context.Context, v *visit) (*page, error) {
	t, err := v.table(ctx)
	if err != nil {
		return nil, err
	}
	var done node
	if written, err := strconv.ParseUint(v.r.FormValue("written"), 10, 32); err == nil {
		done = el("p", has("class", "done"), has("role", "status"), words(counted(int64(written), "item")+" written."))
	}
	return t.page("import", append([]node{done}, t.importForm(v)...)...), nil
}

func (t *table) importForm(v *visit) []node {
	return []node{
		el("form", v.largeForm(t.path("import")), has("enctype", "multipart/form-data"),
			el("label", words("Files "), el("input", has("type", "file"), has("name", "file"), has("multiple"), has("required"), has("accept", ".jsonl,.json,.ndjson,.csv"))),
			el("button", has("class", "primary"), words("Import")),
		),
		el("p", words("JSON lines, each an item as DynamoDB JSON or plain JSON, or CSV with a line of names. Of CSV, the key attributes get their types and all others are strings, as at Amazon. An item replaces the one with its key.")),
		el("p", el("small", words(fmt.Sprintf("Up to %s items and %s, and one import at a time. All lines are checked before the first item is written. mayfly import has no limit.", grouped(importItems), size(importBytes))))),
	}
}

// importFile writes the items of a form's files.
func importFile(ctx context.Context, v *visit) (string, *page, error) {
	t, err := v.table(ctx)
	if err != nil {
		return "", nil, err
	}
	refused := func(err error) (string, *page, error) {
		return "", t.page("import").with(err, t.importForm(v)...), nil
	}
	if !v.pages.importing.TryLock() {
		return refused(&pageError{http.StatusTooManyRequests, "Another import is running. Nothing was written: try again when it has ended."})
	}
	defer v.pages.importing.Unlock()
	u, err := receive(v.r)
	if err != nil {
		return refused(err)
	}
	defer u.remove()
	last, err := t.lastOf(u)
	if err != nil {
		return refused(&pageError{http.StatusBadRequest, fmt.Sprintf("%s. Nothing was written.", err)})
	}
	written, err := t.write(ctx, v, u, last)
	if err != nil {
		text, status := errorText(err)
		if errors.Is(err, context.DeadlineExceeded) {
			text = fmt.Sprintf("An import ends after %s.", when.Text(importLong))
		}
		return refused(&pageError{status, fmt.Sprintf("%s of %s were written, not always the first ones. %s Importing the files again is safe: an item replaces itself.", grouped(int64(written)), counted(len(last), "item"), text)})
	}
	return urlWith(&url.URL{Path: t.path("import")}, url.Values{"written": {strconv.Itoa(written)}}), nil, nil
}

// keyHash identifies the key of an item in 16 bytes, since keys can be long.
type keyHash [16]byte

func hashOf(key string) keyHash {
	sum := sha256.Sum256([]byte(key))
	return keyHash(sum[:16])
}

// lastOf checks all items of an upload. It returns the number of the last one with each key: that
// one counts, as if the items were written one by one.
func (t *table) lastOf(u *upload) (map[keyHash]int, error) {
	last, names, n := map[keyHash]int{}, t.keys(), 0
	err := u.read(t, func(item attr.Item, _ int) error {
		last[hashOf(keyJSON(item, names))] = n
		n++
		if len(last) > importItems {
			return fmt.Errorf("the files have more than %s items: use mayfly import", grouped(importItems))
		}
		return nil
	})
	return last, err
}

// write writes the items of an upload, some batches at a time. It returns the number of items that
// were written for certain.
func (t *table) write(ctx context.Context, v *visit, u *upload, last map[keyHash]int) (int, error) {
	policy := retry.Calls
	policy.For = callMost
	side := transfer.Side{DB: v.DynamoDB(), Table: t.name(), Rate: transfer.NewRate(0), Retry: policy}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var running sync.WaitGroup
	var written atomic.Int64
	slots := make(chan struct{}, importAtOnce)
	var batch []types.WriteRequest
	length := 0
	send := func() error {
		puts := batch
		batch, length = nil, 0
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		running.Go(func() {
			defer func() { <-slots }()
			if err := side.Write(ctx, puts); err != nil {
				stop(err)
				return
			}
			written.Add(int64(len(puts)))
		})
		return ctx.Err()
	}
	names, n := t.keys(), 0
	err := u.read(t, func(item attr.Item, bytes int) error {
		n++
		if last[hashOf(keyJSON(item, names))] != n-1 {
			return nil
		}
		if len(batch) > 0 && (len(batch) == transfer.BatchMax || length+bytes > importedBytes) {
			if err := send(); err != nil {
				return err
			}
		}
		batch, length = append(batch, transfer.Put(item)), length+bytes
		return nil
	})
	if err == nil && len(batch) > 0 {
		err = send()
	}
	running.Wait()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return int(written.Load()), err
}
