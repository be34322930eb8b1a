package bench

import (
	"context"
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

// starts measures the program's own server, and skips an endpoint elsewhere.
func (r *run) starts(ctx context.Context) error {
	if !r.runs(experimentStart) || r.URL != nil {
		return nil
	}
	r.step("start, memory and disk")
	s := &Start{Items: r.Items, MostMB: memory(mostOf(r.endpoints[0].pid))}
	binary, err := os.Stat(r.Self[0])
	if err != nil {
		return err
	}
	s.BinaryMB = round(float64(binary.Size()) / 1e6)
	if s.FirstAnswerMS, s.IdleMB, err = r.startRounds(ctx); err != nil {
		return err
	}
	if r.Durability != "memory" {
		if s.DiskBytesPerItem, err = r.fillDisk(ctx); err != nil {
			return err
		}
		if s.ReopenedFirstAnswerMS, s.ReopenedMB, err = r.reopenRounds(ctx); err != nil {
			return err
		}
	}
	r.report.Start = s
	r.result("first answer after %.0f ms, %.0f MB idle, %.0f bytes of disk per item", s.FirstAnswerMS.Median, s.IdleMB, s.DiskBytesPerItem)
	return nil
}

func mostOf(pid int) int64 {
	_, most := residentBytes(pid)
	return most
}

func memory(bytes int64) float64 { return round(float64(bytes) / 1e6) }

// startRounds starts the server with an empty directory in each round.
func (r *run) startRounds(ctx context.Context) (Spread, float64, error) {
	return r.startEach(ctx, func() error { return os.RemoveAll(r.serverDir(startName)) })
}

// reopenRounds starts it with the directory as it is.
func (r *run) reopenRounds(ctx context.Context) (Spread, float64, error) {
	return r.startEach(ctx, func() error { return nil })
}

// startEach returns the times from the start of the process to its first answer, and its resident
// memory a little later.
func (r *run) startEach(ctx context.Context, before func() error) (Spread, float64, error) {
	var took, resident []float64
	for range r.Rounds {
		if err := before(); err != nil {
			return Spread{}, 0, err
		}
		ms, bytes, err := r.startOnce(ctx)
		if err != nil {
			return Spread{}, 0, err
		}
		took, resident = append(took, ms), append(resident, float64(bytes)/1e6)
	}
	return spreadOf(took), spreadOf(resident).Median, nil
}

func (r *run) startOnce(ctx context.Context) (ms float64, resident int64, err error) {
	start := time.Now()
	e, err := r.startServer(ctx, startName)
	if err != nil {
		return 0, 0, err
	}
	_, err = e.call(ctx, apiPrefix+"ListTables", "{}")
	ms = millis(time.Since(start))
	if err == nil {
		idle := startIdle
		if r.Quick {
			idle = startQuick
		}
		err = pause(ctx, idle)
	}
	resident, _ = residentBytes(e.pid)
	if stopped := e.close(); err == nil {
		err = stopped
	}
	return ms, resident, err
}

// fillDisk stores items in an empty directory, and returns the bytes of disk per item after the
// server's end.
func (r *run) fillDisk(ctx context.Context) (perItem float64, err error) {
	if err := os.RemoveAll(r.serverDir(startName)); err != nil {
		return 0, err
	}
	if _, _, err := r.startOnce(ctx); err != nil {
		return 0, err
	}
	empty, err := directoryBytes(r.serverDir(startName))
	if err != nil {
		return 0, err
	}
	e, err := r.startServer(ctx, startName)
	if err != nil {
		return 0, err
	}
	t, err := e.createTable(ctx, r.prefix, tablePut)
	if err == nil {
		err = e.fillTable(ctx, t, tablePut, 0, r.Items, farDeadline(r.started))
	}
	if err == nil {
		_, err = rest(ctx, func() time.Duration { used, _ := e.cpu(); return used })
	}
	if stopped := e.close(); err == nil {
		err = stopped
	}
	if err != nil {
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
