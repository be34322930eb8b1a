// Package bucket stores an archive in a bucket of S3, or of a service with its API.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/mayflydb/mayfly/internal/sdk/objects"
	"github.com/mayflydb/mayfly/timeseries/archive"
)

// Store keeps an archive's files as objects under a prefix of a bucket. Put stores an object durably
// and as a whole: no reader sees a part of it. It uploads a large one in parts, with one part in
// memory. Open downloads an object to a temporary file.
type Store struct {
	client         *s3.Client
	bucket, prefix string // the prefix is empty or ends with a slash
}

var _ archive.Store = (*Store)(nil)

// scheme is the prefix of a bucket's address.
const scheme = "s3://"

// prefixMax bounds a prefix, in bytes, so that a name fits into the 1,024 of a key.
const prefixMax = 900

// isBucket reports whether s is 3 to 63 lower-case letters, digits, "." and "-", and begins and ends
// with a letter or a digit.
func isBucket(s string) bool {
	const ends = "abcdefghijklmnopqrstuvwxyz0123456789"
	return len(s) >= 3 && len(s) <= 63 && strings.Trim(s, ends+".-") == "" && strings.Trim(s, ".-") == s
}

// Is reports whether a place is the address of a bucket, s3://bucket/prefix.
func Is(place string) bool { return strings.HasPrefix(place, scheme) }

// Open returns the Store at an address. Region, credentials and endpoint (AWS_ENDPOINT_URL_S3) come
// from the usual configuration of the AWS SDK; the default region is us-east-1. The SDK logs
// to l; nil is the default logger.
func Open(ctx context.Context, address string, l *slog.Logger) (*Store, error) {
	if _, err := New(nil, address); err != nil {
		return nil, err
	}
	c, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("the configuration of S3: %w", err)
	}
	if c.Region == "" {
		c.Region = "us-east-1"
	}
	return New(objects.New(c, l, Options), address)
}

// Options sets a client's options for services other than Amazon's: the bucket in the path and not
// in the host's name, and no checksums that they may not support.
func Options(o *s3.Options) {
	o.UsePathStyle = o.BaseEndpoint != nil
	o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
	o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
}

// New returns the Store at an address with an existing client.
func New(client *s3.Client, address string) (*Store, error) {
	bucket, prefix, _ := strings.Cut(strings.TrimPrefix(address, scheme), "/")
	switch {
	case !Is(address) || !isBucket(bucket):
		return nil, fmt.Errorf("invalid address %q; use s3://bucket/prefix", address)
	case len(prefix) > prefixMax:
		return nil, fmt.Errorf("%q has a prefix of %d bytes; the limit is %d", address, len(prefix), prefixMax)
	}
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	return &Store{client, bucket, prefix}, nil
}

func (s *Store) String() string { return scheme + s.bucket + "/" + s.prefix }

// List returns names in order.
func (s *Store) List(ctx context.Context, prefix string) (names []string, err error) {
	pages := s3.NewListObjectsV2Paginator(s.client, &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: aws.String(s.prefix + prefix)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, o := range page.Contents {
			names = append(names, strings.TrimPrefix(aws.ToString(o.Key), s.prefix))
		}
	}
	slices.Sort(names)
	return names, nil
}

// temporary is a file that Close removes.
type temporary struct {
	*os.File
	size int64
}

func newTemporary() (*temporary, error) {
	file, err := os.CreateTemp("", "mayfly-archive-")
	if err != nil {
		return nil, err
	}
	return &temporary{File: file}, nil
}

func (t *temporary) Size() int64 { return t.size }

func (t *temporary) Close() error { return errors.Join(t.File.Close(), os.Remove(t.Name())) }

// Open downloads an object.
func (s *Store) Open(ctx context.Context, name string) (archive.File, error) {
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.bucket, Key: aws.String(s.prefix + name)})
	if missing := (*types.NoSuchKey)(nil); errors.As(err, &missing) {
		return nil, fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	if err != nil {
		return nil, err
	}
	defer out.Body.Close()
	t, err := newTemporary()
	if err != nil {
		return nil, err
	}
	if t.size, err = io.Copy(t, out.Body); err == nil && out.ContentLength != nil && t.size != *out.ContentLength {
		err = fmt.Errorf("got %d of %d bytes: %w", t.size, *out.ContentLength, io.ErrUnexpectedEOF)
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// Remove deletes an object.
func (s *Store) Remove(ctx context.Context, name string) error {
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: aws.String(s.prefix + name)})
	return err
}
