// Package exportfile writes and reads exports of tables, in the layout of DynamoDB's exports to S3. It
// also reads plain folders of DynamoDB JSON or CSV, as DynamoDB's imports from S3 do.
//
//	AWSDynamoDB/ID/_started                 empty: the export has begun
//	AWSDynamoDB/ID/manifest-summary.json    the table, the time, and the number of items
//	AWSDynamoDB/ID/manifest-summary.checksum the MD5 of that file, in base64
//	AWSDynamoDB/ID/manifest-files.json      a line for each data file
//	AWSDynamoDB/ID/manifest-files.checksum
//	AWSDynamoDB/ID/data/NAME.json.gz        a line for each item: {"Item":{…}}
//	AWSDynamoDB/ID/table.json               ours: how to create the table
//
// An incremental export has the changes of a table between two instants. Its data files lie beside the
// exports' folders, so their names begin with the export's ID:
//
//	AWSDynamoDB/data/ID-NAME.json.gz        {"Metadata":{"WriteTimestampMicros":{"N":"…"}},"Keys":{…},"OldImage":{…},"NewImage":{…}}
//
// Items are JSON in bytes: the package knows their members, and no types of values.
//
// Laws, each with a test of its name:
//
//	RoundTrip: reading an export returns the items that were written
//	Checked:   a reader that returns nil has seen the bytes and the items that the manifest names
//	Bounded:   a reader holds one record in memory, of RecordMax bytes at most, and the window of zstd
package exportfile

import (
	"cmp"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"path"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/mayflydb/mayfly/internal/objects"
)

// Bounds of what a reader accepts.
const (
	// RecordMax is the length of the longest record in bytes. An item has at most 400 KB; escapes can
	// make its JSON six times as long, and an incremental export has two images of it.
	RecordMax  = 6 << 20
	summaryMax = 1 << 20 // bytes of manifest-summary.json and of table.json
	filesMax   = 1_000_000
)

// Names of an export's files.
const (
	root           = "AWSDynamoDB"
	started        = "_started"
	summaryName    = "manifest-summary.json"
	filesName      = "manifest-files.json"
	tableName      = "table.json"
	dataSuffix     = ".json.gz"
	sumSuffix      = ".checksum"
	sumSuffixOther = ".md5" // in older exports
)

// Values of a summary.
const (
	versionFull        = "2020-06-30"
	versionIncremental = "2023-08-01"
	formatJSON         = "DYNAMODB_JSON"
	FullExport         = "FULL_EXPORT"
	Incremental        = "INCREMENTAL_EXPORT"
	NewImage           = "NEW_IMAGE"
	NewAndOldImages    = "NEW_AND_OLD_IMAGES"
	summaryTimes       = "2006-01-02T15:04:05.000Z"
)

// A record of a full export is an item between ItemBegin and ItemEnd.
const (
	ItemBegin = `{"Item":`
	ItemEnd   = `}`
)

// Summary is the contents of manifest-summary.json.
type Summary struct {
	Version            string  `json:"version"`
	ExportARN          string  `json:"exportArn"`
	StartTime          string  `json:"startTime"`
	EndTime            string  `json:"endTime"`
	TableARN           string  `json:"tableArn"`
	TableID            string  `json:"tableId"`
	ExportTime         string  `json:"exportTime,omitempty"`     // of a full export
	ExportFromTime     string  `json:"exportFromTime,omitempty"` // of an incremental one
	ExportToTime       string  `json:"exportToTime,omitempty"`
	S3Bucket           string  `json:"s3Bucket"`
	S3Prefix           *string `json:"s3Prefix"`
	S3SSEAlgorithm     *string `json:"s3SseAlgorithm"`
	S3SSEKMSKeyID      *string `json:"s3SseKmsKeyId"`
	ManifestFilesS3Key string  `json:"manifestFilesS3Key"`
	BilledSizeBytes    int64   `json:"billedSizeBytes"`
	ItemCount          int64   `json:"itemCount"`
	OutputFormat       string  `json:"outputFormat"`
	OutputView         string  `json:"outputView,omitempty"` // of an incremental export
	ExportType         string  `json:"exportType"`
}

// DataFile is a line of manifest-files.json.
type DataFile struct {
	ItemCount     int64  `json:"itemCount"`
	MD5Checksum   string `json:"md5Checksum"` // of the compressed bytes, in base64
	ETag          string `json:"etag"`        // the same in hexadecimal
	DataFileS3Key string `json:"dataFileS3Key"`
}

// Writer writes an export.
type Writer struct {
	Incremental bool // the records are changes; set before the first Data

	store          objects.Store
	id             string
	bucket, prefix string
}

// NewID returns a name for an export that begins now.
func NewID(now time.Time) string { return fmt.Sprintf("%014d-%08x", now.UnixMilli(), rand.Uint32()) }

// NewWriter returns a writer of the export with this name. bucket and prefix are the place of the
// store for the manifests: both are empty for a directory.
func NewWriter(store objects.Store, id, bucket, prefix string) *Writer {
	return &Writer{store: store, id: id, bucket: bucket, prefix: strings.Trim(prefix, "/")}
}

// Time returns an instant as summaries have it.
func Time(t time.Time) string { return t.UTC().Format(summaryTimes) }

// Folder returns the name of the export's folder in its store.
func Folder(id string) string { return path.Join(root, id) }

// data returns the name in the store of a data file.
func (w *Writer) data(name string) string {
	if w.Incremental {
		return path.Join(root, "data", w.id+"-"+name+dataSuffix)
	}
	return path.Join(Folder(w.id), "data", name+dataSuffix)
}

// Put writes a file beside the manifests, which readers of exports ignore.
func (w *Writer) Put(ctx context.Context, name string, text []byte) error {
	return w.store.Put(ctx, path.Join(Folder(w.id), name), func(to io.Writer) error {
		_, err := to.Write(text)
		return err
	})
}

// Begin shows that the export has begun. table is the contents of table.json.
func (w *Writer) Begin(ctx context.Context, table []byte) error {
	if err := w.Put(ctx, started, nil); err != nil {
		return err
	}
	return w.Put(ctx, tableName, table)
}

// Abandon removes the files of an export that has failed. The last one marks it as begun, so as long
// as a file is left the export cannot pass for files without manifests.
func (w *Writer) Abandon(ctx context.Context) error {
	for _, prefix := range []string{path.Join(root, "data", w.id+"-"), Folder(w.id) + "/"} {
		names, err := w.store.List(ctx, prefix)
		if err != nil {
			return err
		}
		for _, name := range names {
			if path.Base(name) == started {
				continue
			}
			if err := w.store.Remove(ctx, name); err != nil {
				return err
			}
		}
	}
	return w.store.Remove(ctx, path.Join(Folder(w.id), started))
}

// Data writes a data file with the records that write adds. A record is JSON in one line, without its
// newline. The file exists only if write succeeds.
func (w *Writer) Data(ctx context.Context, name string, write func(add func(record []byte) error) error) (DataFile, error) {
	name = w.data(name)
	f := DataFile{DataFileS3Key: path.Join(w.prefix, name)}
	var sum hash.Hash
	err := w.store.Put(ctx, name, func(to io.Writer) error {
		sum, f.ItemCount = md5.New(), 0
		zipped, err := gzip.NewWriterLevel(io.MultiWriter(to, sum), gzip.BestSpeed)
		if err != nil {
			return err
		}
		var line []byte
		add := func(record []byte) error {
			line = append(append(line[:0], record...), '\n')
			f.ItemCount++
			_, err := zipped.Write(line)
			return err
		}
		if err := write(add); err != nil {
			return err
		}
		return zipped.Close()
	})
	if err != nil {
		return DataFile{}, err
	}
	f.MD5Checksum, f.ETag = base64.StdEncoding.EncodeToString(sum.Sum(nil)), hex.EncodeToString(sum.Sum(nil))
	return f, nil
}

// Finish writes the manifests. It sets the members of the summary that follow from the writer and the
// files. The caller sets the table and the times: ExportTime of a full export, which is the beginning
// by default, or ExportFromTime, ExportToTime and OutputView of an incremental one.
func (w *Writer) Finish(ctx context.Context, s Summary, files []DataFile, begun, ended time.Time) (Summary, error) {
	var lines []byte
	s.ItemCount = 0
	for _, f := range files {
		line, err := json.Marshal(f)
		if err != nil {
			return s, err
		}
		lines = append(append(lines, line...), '\n')
		s.ItemCount += f.ItemCount
	}
	s.StartTime, s.EndTime = Time(begun), Time(ended)
	if w.Incremental {
		s.Version, s.ExportType = versionIncremental, Incremental
		s.OutputView = cmp.Or(s.OutputView, NewAndOldImages)
	} else {
		s.Version, s.ExportType = versionFull, FullExport
		s.ExportTime = cmp.Or(s.ExportTime, s.StartTime)
	}
	s.OutputFormat, s.S3Bucket, s.ManifestFilesS3Key = formatJSON, w.bucket, path.Join(w.prefix, Folder(w.id), filesName)
	s.ExportARN = s.TableARN + "/export/" + w.id
	if w.prefix != "" {
		s.S3Prefix = &w.prefix
	}
	summary, err := json.Marshal(s)
	if err != nil {
		return s, err
	}
	// The summary is written last: a reader that finds it finds the other files.
	for _, file := range []struct {
		name string
		text []byte
	}{{filesName, lines}, {summaryName, summary}} {
		sum := md5.Sum(file.text)
		if err := w.Put(ctx, strings.TrimSuffix(file.name, ".json")+sumSuffix, []byte(base64.StdEncoding.EncodeToString(sum[:]))); err != nil {
			return s, err
		}
		if err := w.Put(ctx, file.name, file.text); err != nil {
			return s, err
		}
	}
	return s, nil
}
