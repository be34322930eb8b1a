package service

import (
	"encoding/hex"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/mayflydb/mayfly/internal/store/bulk"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// What exports and imports share: buckets, client tokens, ARNs, and pages of jobs.

const (
	jobARNLengthMin      = 37
	clientTokenLengthMax = 1024
	bucketLengthMax      = 255
	prefixLengthMax      = 1024
)

var (
	bucketPattern      = lazyPattern(`^[a-z0-9A-Z]+[\.\-\w]*[a-z0-9A-Z]+$`)
	ownerPattern       = lazyPattern(`^[0-9]{12}$`)
	clientTokenPattern = lazyPattern(`^[^\$]+$`)
)

// pattern is a regular expression that is compiled at its first use.
type pattern func() *regexp.Regexp

func lazyPattern(text string) pattern {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// IsBucket reports whether a name is one that requests may have for a bucket.
func IsBucket(name string) bool {
	return len(name) <= bucketLengthMax && bucketPattern().MatchString(name)
}

// match checks a string against a pattern, which the message quotes.
func (s *shape) match(path string, v Opt[string], p pattern, quoted string) {
	if v.Set && !p().MatchString(v.V) {
		s.Pattern(path, v.V, quoted)
	}
}

// bucket checks the name of a bucket, the owner's account and the prefix of names in it. at is the
// path of the structure around them, and prefix the name of the third.
func (s *shape) bucket(at string, b *BucketSource, prefix string) {
	s.Required(at+"s3Bucket", b.Bucket.Set)
	s.match(at+"s3Bucket", b.Bucket, bucketPattern, bucketPattern().String())
	s.length(at+"s3Bucket", b.Bucket, 0, bucketLengthMax)
	s.match(at+"s3BucketOwner", b.Owner, ownerPattern, "[0-9]{12}")
	s.length(at+prefix, b.Prefix, 0, prefixLengthMax)
}

func (s *shape) clientToken(v Opt[string]) {
	s.match("clientToken", v, clientTokenPattern, clientTokenPattern().String())
	s.length("clientToken", v, 1, clientTokenLengthMax)
}

// jobARN checks the ARN of an export or import.
func (s *shape) jobARN(path string, v Opt[string]) {
	s.Required(path, v.Set)
	s.length(path, v, jobARNLengthMin, arnLengthMax)
}

// checkPrefix refuses a prefix that could not be a path in a directory, or that would hide files:
// readers of a bucket skip names that begin with a dot.
func checkPrefix(member string, v Opt[string]) error {
	refuse := func(problem string) error {
		return invalid(invalidValues + member + " " + strconv.Quote(v.V) + " " + problem)
	}
	switch {
	case strings.HasPrefix(v.V, "/"):
		return refuse("begins with a slash: leave it out")
	case strings.Contains(v.V, "//"):
		return refuse("has two slashes in a row: leave one out")
	case strings.ContainsAny(v.V, "\\\x00"):
		return refuse("has a backslash or a NUL: use letters, digits, '-', '_' and '.', and slashes between folders")
	case strings.HasPrefix(v.V, ".") || strings.Contains(v.V, "/."):
		return refuse("has a folder that begins with a dot: use the path from the top of the bucket, without such folders")
	}
	return nil
}

// tableOf returns the name of the table in the ARN of a table, which may be absent.
func tableOf(member string, arn Opt[string]) (string, error) {
	if arn.Set && !isARN(arn.V) {
		return "", invalid(invalidValues + member + " is not an ARN: " + arn.V)
	}
	ref, err := tableRef{given: arn.V}.resolve()
	return ref.name, err
}

// The paths between the table and the id in the ARNs of exports and imports.
const (
	exportPath = "/export/"
	importPath = "/import/"
)

func (s *Service) jobARN(j *bulk.Job, path string) string {
	return s.tableARN(j.TableName) + path + j.ID
}

// jobByARN returns the job that an ARN names, or engine.ErrJobNotFound. The ARN must name the job and
// its table, and nothing else: policies match its whole resource. Any region and account will do.
func jobByARN[J any](arn, path string, find func(id string) (J, error), of func(J) *bulk.Job) (none J, err error) {
	resource, err := arnResource(arn)
	if err != nil {
		return none, err
	}
	job, err := find(resource[strings.LastIndexByte(resource, '/')+1:])
	if err != nil {
		return none, err
	}
	if j := of(job); resource != "table/"+j.TableName+path+j.ID {
		return none, engine.ErrJobNotFound
	}
	return job, nil
}

// jobsPageMax is the longest page of jobs, and the default.
const jobsPageMax = 25

// pageOfJobs returns a page of the jobs of a table, or of all tables if its name is empty, and the
// token of the next page.
func pageOfJobs[J any](jobs []J, of func(J) *bulk.Job, table string, token Opt[string], limit Opt[int64]) (page []J, next string, err error) {
	after, err := readPageToken(token)
	if err != nil {
		return nil, "", err
	}
	last := ""
	for _, job := range jobs {
		j := of(job)
		if j.ID <= after || table != "" && j.TableName != table {
			continue
		}
		if int64(len(page)) == limit.Or(jobsPageMax) {
			return page, pageToken(last), nil
		}
		page, last = append(page, job), j.ID
	}
	return page, "", nil
}

// A token of a page is the id of the page's last job, padded with zeros, in hexadecimal digits. AWS
// documents this alphabet and the length for ListImports, and SDKs refuse shorter tokens.
const (
	pageTokenLength    = 112
	pageTokenLengthMax = 1024
)

func pageToken(id string) string {
	var padded [pageTokenLength / 2]byte
	copy(padded[:], id)
	return hex.EncodeToString(padded[:])
}

// readPageToken returns the id in a token, or an empty one if there is no token.
func readPageToken(token Opt[string]) (id string, err error) {
	if !token.Set {
		return "", nil
	}
	padded, err := hex.DecodeString(token.V)
	id = strings.TrimRight(string(padded), "\x00")
	if err != nil || pageToken(id) != token.V || !jobID().MatchString(id) {
		return "", invalid(invalidValues + "NextToken is not one that this operation returned: send the NextToken of the previous page, or none for the first page")
	}
	return id, nil
}

var jobID = lazyPattern(`^[0-9]{14}-[0-9a-f]{8}$`)

// jobError is apiError for the errors that exports and imports share.
func jobError(err error, table string) error {
	if refused, ok := errors.AsType[*bulk.RequestError](err); ok {
		return invalid(invalidValues + refused.Error())
	}
	switch {
	case errors.Is(err, bulk.ErrTooManyJobs):
		return &dynamo.Error{Code: dynamo.CodeLimitExceeded, Message: "Up to " + strconv.Itoa(bulk.ExportsMax) + " exports and " +
			strconv.Itoa(bulk.ImportsMax) + " imports can be in progress at once: wait until one has ended"}
	case errors.Is(err, engine.ErrTooManyJobs):
		return &dynamo.Error{Code: dynamo.CodeLimitExceeded, Message: "There are as many exports and imports in progress as a database can remember: wait until one has ended"}
	default:
		return apiError(err, table)
	}
}
