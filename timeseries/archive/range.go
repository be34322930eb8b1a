package archive

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/mayflydb/mayfly/timeseries"
)

// Range returns a device's samples in the archive, by time. It holds a device's day in memory, up
// to 1 GB, and a page of each column of a file.
func (a *Archive) Range(ctx context.Context, q timeseries.Query) iter.Seq2[timeseries.Sample, error] {
	return func(yield func(timeseries.Sample, error) bool) {
		fail := func(err error) { yield(timeseries.Sample{}, err) }
		if err := checkQuery(q); err != nil {
			fail(err)
			return
		}
		files, err := a.files(ctx)
		if err != nil {
			fail(err)
			return
		}
		behind, err := timeseries.PlaceKey(q)
		if err != nil {
			fail(err)
			return
		}
		days := daysBetween(files, q.From, q.To)
		if q.Newest {
			slices.Reverse(days)
		}
		count := 0
		for _, day := range days {
			if behind != "" && (q.Newest && day > behind[:len(day)] || !q.Newest && day < behind[:len(day)]) {
				continue
			}
			samples, err := a.day(ctx, day, files[day], q)
			if err != nil {
				fail(err)
				return
			}
			for _, s := range samples {
				if behind != "" && (q.Newest && s.Key >= behind || !q.Newest && s.Key <= behind) {
					continue
				}
				if !yield(s, nil) {
					return
				}
				if count++; count == q.Limit {
					return
				}
			}
		}
	}
}

func checkQuery(q timeseries.Query) error {
	switch {
	case q.Device == "":
		return errors.New("no device is named")
	case q.Limit < 0:
		return fmt.Errorf("the limit %d is negative", q.Limit)
	case !q.From.IsZero() && !q.To.IsZero() && q.To.Before(q.From):
		return fmt.Errorf("the range ends at %s, before it begins at %s", q.To.Format(time.RFC3339Nano), q.From.Format(time.RFC3339Nano))
	}
	return nil
}

const (
	listsMax     = 100     // maximum number of listings of a day's files
	deviceDayMax = 1 << 30 // bytes of a device's day in memory, an estimate
	sampleBytes  = 400     // overhead of a sample
)

// day reads a device's samples of a day. Of samples with one Key it returns the last file's, the
// item's final state.
//
// A target, here or in another process, may combine files and remove them before day reads them.
// Then day lists the files again, and reads the new ones. It keeps the files that it has read,
// since files never change: so it terminates even if it reads more slowly than a target combines
// files. A file that cannot be opened and is listed again is an error.
func (a *Archive) day(ctx context.Context, day string, names []string, q timeseries.Query) ([]timeseries.Sample, error) {
	read := map[string]*deviceFile{}
	for lists := 0; ; lists++ {
		missing, err := a.readDay(ctx, names, q, read)
		if err == nil {
			return joined(names, read, q.Newest), nil
		}
		if missing == "" || lists == listsMax {
			return nil, err
		}
		again, listErr := a.list(ctx, dayDir(day))
		if listErr != nil {
			return nil, listErr
		}
		if names = again.days[day]; slices.Contains(names, missing) {
			return nil, err
		}
	}
}

// deviceFile is a device's samples in a file, and an estimate of their bytes.
type deviceFile struct {
	samples []timeseries.Sample
	bytes   int
}

// readDay adds the files of names that are not in read yet to read, and drops files that names
// lacks from it. If a file is missing, it returns its name and the error.
func (a *Archive) readDay(ctx context.Context, names []string, q timeseries.Query, read map[string]*deviceFile) (missing string, err error) {
	maps.DeleteFunc(read, func(name string, _ *deviceFile) bool { return !slices.Contains(names, name) })
	left := deviceDayMax
	for _, f := range read {
		left -= f.bytes
	}
	for _, name := range names {
		if read[name] != nil {
			continue
		}
		f, err := a.readDevice(ctx, name, q, left)
		if errors.Is(err, fs.ErrNotExist) {
			return name, err
		}
		if err != nil {
			return "", err
		}
		left -= f.bytes
		read[name] = f
	}
	return "", nil
}

// readDevice reads a device's samples of the query's range and metrics in a file. It fails if they
// take more than bytesMax in memory.
func (a *Archive) readDevice(ctx context.Context, name string, q timeseries.Query, bytesMax int) (*deviceFile, error) {
	f := &deviceFile{}
	m := newMetrics()
	for r, err := range a.read(ctx, name, q.Device, m) {
		if err != nil {
			return nil, err
		}
		s, err := m.sample(*r)
		if err != nil {
			return nil, fmt.Errorf("read %s in %s: %w", name, a.store, err)
		}
		if !q.From.IsZero() && s.Time.Before(q.From) || !q.To.IsZero() && !s.Time.Before(q.To) {
			continue
		}
		if len(q.Metrics) > 0 {
			project(&s, q.Metrics)
		}
		if len(s.Values) == 0 {
			continue
		}
		if f.bytes += sampleBytes + r.bytes(); f.bytes > bytesMax {
			return nil, fmt.Errorf("read %s in %s: the device has more than %d MB of samples on that day: ask for a shorter range, or for some metrics", name, a.store, deviceDayMax>>20)
		}
		f.samples = append(f.samples, s)
	}
	return f, nil
}

// joined returns the samples of files in order; of those with one Key the last file's.
func joined(names []string, read map[string]*deviceFile, newest bool) (samples []timeseries.Sample) {
	for _, name := range slices.Backward(names) {
		samples = append(samples, read[name].samples...)
	}
	sort.SliceStable(samples, func(i, j int) bool { return samples[i].Key < samples[j].Key })
	samples = slices.CompactFunc(samples, func(a, b timeseries.Sample) bool { return a.Key == b.Key })
	if newest {
		slices.Reverse(samples)
	}
	return samples
}

// project drops metrics that the query does not select.
func project(s *timeseries.Sample, metrics []string) {
	s.Tags = nil
	for name := range s.Values {
		if !slices.Contains(metrics, name) {
			delete(s.Values, name)
		}
	}
}

// Union returns a device's samples in the live table and the archive, in one order and without
// duplicates; of two with one Key the live one. It reads the live table first, so it sees a sample
// that expires meanwhile. Three samples are in neither place: one that Follow has not written yet
// (FollowOptions.Every, and longer while the store fails); an expired one that guard has not
// archived yet, since a Reader omits it; and one that expires during the read, after the first
// page.
func (a *Archive) Union(ctx context.Context, live *timeseries.Reader, q timeseries.Query) iter.Seq2[timeseries.Sample, error] {
	return func(yield func(timeseries.Sample, error) bool) {
		if err := checkQuery(q); err != nil {
			yield(timeseries.Sample{}, err)
			return
		}
		count := 0
		for s, err := range timeseries.Union(live.Range(ctx, q), a.Range(ctx, q), q.Newest) {
			if !yield(s, err) || err != nil {
				return
			}
			if count++; count == q.Limit {
				return
			}
		}
	}
}
