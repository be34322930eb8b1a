package timeseries

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"

	"github.com/mayflydb/mayfly/internal/clock"
)

// launch starts to write the current chunk, and waits while too many are in progress. From time to
// time it waits for all of them and saves the progress.
func (in *ingesting) launch(ctx context.Context) error {
	c := in.chunk
	in.chunk = in.newChunk()
	go func() {
		defer close(c.done)
		_, c.err = in.w.put(ctx, c.samples)
	}()
	in.flying = append(in.flying, c)
	for len(in.flying) >= chunksAtOnce {
		if err := in.land(); err != nil {
			return err
		}
	}
	if in.o.Progress != nil {
		in.progress()
		in.o.Progress(in.tally.report)
	}
	if in.saved() >= checkpointEvery {
		return in.checkpoint(ctx)
	}
	return nil
}

// land waits for the oldest chunk in progress. It rejects the chunk's samples that can never be
// stored, and counts the others as written. If the chunk must be written again, it sets failed and
// returns the error.
func (in *ingesting) land() error {
	c := in.flying[0]
	<-c.done
	in.flying = in.flying[1:]
	bad, err := unusable(c.err)
	if err != nil {
		in.failed = true
		return err
	}
	for _, r := range bad {
		text := ""
		if c.texts != nil {
			text = c.texts[r.Index]
		}
		if err := in.reject(c.at[r.Index], text, r.Err); err != nil {
			return err
		}
	}
	in.tally.report.Written += int64(len(c.samples) - len(bad))
	return nil
}

// drain waits for all chunks in progress, and returns the first error. If no chunk has failed and
// the current one is empty, it moves in.done to the current position: all lines before that are
// written.
func (in *ingesting) drain() (err error) {
	for len(in.flying) > 0 {
		if bad := in.land(); bad != nil && err == nil {
			err = bad
		}
	}
	if !in.failed && len(in.chunk.samples) == 0 {
		in.done = in.progress()
	}
	return err
}

// checkpoint waits until all lines read so far are written, and the latest samples too, and saves
// the progress.
func (in *ingesting) checkpoint(ctx context.Context) error {
	if err := in.drain(); err != nil {
		return err
	}
	return in.save(ctx)
}

// save waits until the latest samples are stored, and then stores in.done, if the options name a
// checkpoint.
func (in *ingesting) save(ctx context.Context) error {
	if err := in.w.latest.settleAll(ctx); err != nil {
		return err
	}
	in.saved = clock.Stopwatch()
	if in.o.Checkpoint == "" {
		return nil
	}
	return in.w.series.SaveCheckpoint(ctx, in.o.Checkpoint, in.done)
}

// progress updates the report's counts of lines and bytes, and returns the current position in the
// file with a copy of the report.
func (in *ingesting) progress() progress {
	in.tally.report.Lines, in.tally.report.Bytes = in.lines.number, in.lines.offset
	report := in.tally.report
	report.Reasons, report.Unknown, report.First = maps.Clone(report.Reasons), maps.Clone(report.Unknown), slices.Clone(report.First)
	return progress{
		Offset: in.lines.offset, Line: in.lines.number, Head: in.headHash(int64(len(in.head))), HeadLen: int64(len(in.head)), Rejects: in.rejects, Report: report,
	}
}

// reject counts a line and writes it to the file of rejects.
func (in *ingesting) reject(number int64, text string, why *SampleError) error {
	r := rejected(number, text, why)
	in.tally.reject(r)
	if in.o.Rejects == nil {
		return nil
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	n, err := in.o.Rejects.Write(append(line, '\n'))
	in.rejects += int64(n)
	if err != nil {
		return fmt.Errorf("the rejects file: %w", err)
	}
	return nil
}

// recent remembers at least the last half million samples, by a hash.
type recent struct {
	seed        maphash.Seed
	now, before map[uint64]struct{}
}

// holds reports whether it remembers a sample, and remembers it.
func (r *recent) holds(s *Sample) bool {
	if r.now == nil || len(r.now) >= recentMax {
		if r.now == nil {
			r.seed = maphash.MakeSeed()
		}
		r.before, r.now = r.now, make(map[uint64]struct{})
	}
	metadata, err := s.metadata()
	if err != nil {
		return false
	}
	var h maphash.Hash
	h.SetSeed(r.seed)
	_, _ = h.WriteString(s.Device)
	_ = h.WriteByte(0)
	_, _ = h.WriteString(sortKey(s, metadata))
	id := h.Sum64()
	_, here := r.now[id]
	_, earlier := r.before[id]
	r.now[id] = struct{}{}
	return here || earlier
}
