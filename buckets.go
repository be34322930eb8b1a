package mayfly

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/mayflydb/mayfly/internal/objects"
	"github.com/mayflydb/mayfly/internal/option"
	"github.com/mayflydb/mayfly/internal/store/bulk"
	"github.com/mayflydb/mayfly/internal/store/service"
)

// Bucket has the files of a bucket: ExportTableToPointInTime writes them, and ImportTable reads them.
// BucketDir returns one; others are implementations of your own.
type Bucket = objects.Store

// BucketFile is an open file of a Bucket.
type BucketFile = objects.File

// BucketDir returns the bucket of the files in a directory, which the first file creates.
func BucketDir(dir string) Bucket { return objects.Dir(dir) }

// checkBuckets collects the faults of buckets.
func checkBuckets(all *option.Complaints, buckets map[string]Bucket) {
	for _, name := range slices.Sorted(maps.Keys(buckets)) {
		all.AddIf(!service.IsBucket(name), "Buckets",
			"%q is no name of a bucket; it has at most 255 letters, digits, dots, hyphens and underscores, with a letter or digit at both ends", name)
		all.AddIf(buckets[name] == nil, "Buckets", "%q has no Bucket", name)
	}
}

// bucket returns the bucket of a name, or bulk.ErrNoBucket.
func (db *DB) bucket(_ context.Context, name string) (objects.Store, error) {
	if b := db.options.Buckets[name]; b != nil {
		return b, nil
	}
	return nil, fmt.Errorf("%w: the server knows no bucket %q; start it with --bucket %s=DIRECTORY, or set Options.Buckets", bulk.ErrNoBucket, name, name)
}
