package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// experimentStart measures start, memory and disk of the program's own server.
const experimentStart = "start"

const (
	startName   = "start" // name of the restarted server
	startIdle   = time.Second
	startQuick  = 100 * time.Millisecond
	reserveFile = "RESERVE" // not data: the server frees it when the disk is full
)

// starts measures the program's own server.
func (r *run) starts(ctx context.Context) error {
	r.step("start, memory and disk")
	_, most := residentBytes(r.endpoints[0].pid)
	s := &Start{Items: r.Items, MostMB: memory(most)}
	binary, err := os.Stat(r.Self[0])
	if err != nil {
		return err
	}
	s.BinaryMB = round(float64(binary.Size()) / 1e6)
	if s.FirstAnswerMS, s.IdleMB, err = r.startEach(ctx, true); err != nil {
		return err
	}
	if r.Durability != "memory" {
		if s.DiskBytesPerItem, err = r.fillDisk(ctx); err != nil {
			return err
		}
		if s.ReopenedFirstAnswerMS, s.ReopenedMB, err = r.startEach(ctx, false); err != nil {
			return err
		}
	}
	r.report.Start = s
	r.result("first answer after %.0f ms, %.0f MB idle, %.0f bytes of disk per item", s.FirstAnswerMS.Median, s.IdleMB, s.DiskBytesPerItem)
	return nil
}

func memory(bytes int64) float64 { return round(float64(bytes) / 1e6) }

// startEach returns the times from the start of the process to its first answer, and its resident
// memory a little later. The server's directory is empty each time, or stays as it is.
func (r *run) startEach(ctx context.Context, empty bool) (took Spread, resident float64, err error) {
	var times, memories []float64
	for range r.Rounds {
		if empty {
			if err := os.RemoveAll(r.serverDir(startName)); err != nil {
				return Spread{}, 0, err
			}
		}
		ms, bytes, err := r.startOnce(ctx)
		if err != nil {
			return Spread{}, 0, err
		}
		times, memories = append(times, ms), append(memories, float64(bytes)/1e6)
	}
	return spreadOf(times), spreadOf(memories).Median, nil
}

func (r *run) startOnce(ctx context.Context) (ms float64, resident int64, err error) {
	start := time.Now()
	e, err := r.startServer(ctx, startName, r.Durability)
	if err != nil {
		return 0, 0, err
	}
	_, err = e.call(ctx, apiPrefix+"ListTables", "{}")
	ms = millis(time.Since(start))
	if err == nil {
		err = Pause(ctx, pick(r.Quick, startQuick, startIdle))
	}
	resident, _ = residentBytes(e.pid)
	return ms, resident, errors.Join(err, e.close())
}

// fillDisk starts a server in the directory that an empty one has left, stores items there, and
// stops it. It returns the bytes by which the directory has grown, per item.
func (r *run) fillDisk(ctx context.Context) (perItem float64, err error) {
	empty, err := directoryBytes(r.serverDir(startName))
	if err != nil {
		return 0, err
	}
	e, err := r.startServer(ctx, startName, r.Durability)
	if err != nil {
		return 0, err
	}
	t, err := e.createTable(ctx, r.prefix, tablePut)
	if err == nil {
		err = e.fillTable(ctx, t, 0, r.Items, farDeadline)
	}
	if err == nil {
		_, err = awaitIdle(ctx, e.used, idleLimit)
	}
	if err = errors.Join(err, e.close()); err != nil {
		return 0, fmt.Errorf("fill a directory: %w", err)
	}
	full, err := directoryBytes(r.serverDir(startName))
	return round(float64(full-empty) / float64(r.Items)), err
}

// directoryBytes returns the size of all files below a directory.
func directoryBytes(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == reserveFile {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}
