package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

const (
	partBytes = 8 << 20 // bytes of a part; S3 requires 5 MB
	partsMax  = 10_000  // S3's limit for an upload
	abortTime = 10 * time.Second

	parquetType = "application/vnd.apache.parquet"
	otherType   = "application/octet-stream"
)

// Put creates or replaces an object. One of more than 8 MB is uploaded in parts, which become the
// object once all are stored. If the process dies before, the parts stay invisible; a lifecycle
// rule of the bucket can remove them.
func (s *Store) Put(ctx context.Context, name string, write func(io.Writer) error) error {
	u := &upload{ctx: ctx, client: s.client, bucket: &s.bucket, key: aws.String(s.prefix + name)}
	err := write(u)
	if err == nil {
		err = u.finish()
	}
	if err != nil {
		return errors.Join(err, u.abort())
	}
	return nil
}

// upload is an object in progress.
type upload struct {
	ctx         context.Context
	client      *s3.Client
	bucket, key *string
	part        []byte  // not sent yet
	id          *string // of an upload in parts; nil before its first part
	sent        []types.CompletedPart
}

// Write buffers data up to a part, and sends full parts.
func (u *upload) Write(p []byte) (n int, err error) {
	for n < len(p) {
		// only now, so that an object of one part needs no upload in parts
		if len(u.part) == partBytes {
			if err := u.send(); err != nil {
				return n, err
			}
		}
		some := min(len(p)-n, partBytes-len(u.part))
		u.part = append(u.part, p[n:n+some]...)
		n += some
	}
	return n, nil
}

// send sends a part.
func (u *upload) send() error {
	if len(u.sent) == partsMax {
		return fmt.Errorf("the object would have more than %d parts of %d bytes", partsMax, partBytes)
	}
	if u.id == nil {
		out, err := u.client.CreateMultipartUpload(u.ctx, &s3.CreateMultipartUploadInput{Bucket: u.bucket, Key: u.key, ContentType: u.contentType()})
		if err != nil {
			return err
		}
		u.id = out.UploadId
	}
	number := aws.Int32(int32(len(u.sent) + 1))
	out, err := u.client.UploadPart(u.ctx, &s3.UploadPartInput{Bucket: u.bucket, Key: u.key, UploadId: u.id, PartNumber: number, Body: bytes.NewReader(u.part)})
	if err != nil {
		return fmt.Errorf("part %d: %w", *number, err)
	}
	u.sent = append(u.sent, types.CompletedPart{ETag: out.ETag, PartNumber: number})
	u.part = u.part[:0]
	return nil
}

func (u *upload) contentType() *string {
	if strings.HasSuffix(*u.key, ".parquet") {
		return aws.String(parquetType)
	}
	return aws.String(otherType)
}

// finish completes the object.
func (u *upload) finish() error {
	if u.id == nil {
		_, err := u.client.PutObject(u.ctx, &s3.PutObjectInput{Bucket: u.bucket, Key: u.key, Body: bytes.NewReader(u.part), ContentType: u.contentType()})
		return err
	}
	if err := u.send(); err != nil {
		return err
	}
	_, err := u.client.CompleteMultipartUpload(u.ctx, &s3.CompleteMultipartUploadInput{
		Bucket: u.bucket, Key: u.key, UploadId: u.id, MultipartUpload: &types.CompletedMultipartUpload{Parts: u.sent},
	})
	return err
}

// abort deletes the parts, even after ctx is done.
func (u *upload) abort() error {
	if u.id == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(u.ctx), abortTime)
	defer cancel()
	_, err := u.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: u.bucket, Key: u.key, UploadId: u.id})
	if gone := (*types.NoSuchUpload)(nil); errors.As(err, &gone) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("its uploaded parts stay in the bucket: %w", err)
	}
	return nil
}
