package program

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/sdk"
)

// Each failure to open a database that a user can mend comes with the advice for it.
func TestAdviseOpen(t *testing.T) {
	for cause, advice := range map[error]string{
		mayfly.ErrLocked:     "stop the other process that uses d",
		mayfly.ErrForeign:    "an empty or new directory",
		syscall.ENOTDIR:      "an empty or new directory",
		os.ErrPermission:     "a directory that this user may write to",
		mayfly.ErrNoSpace:    "free space on the disk that holds d, then start again: nothing is lost",
		mayfly.ErrDamaged:    "nothing in d was changed; list all faults with `mayfly check d`; then restore a backup, or copy the readable part with `mayfly salvage d --to NEW`",
		mayfly.ErrCorrupt:    "list all faults with `mayfly check d`; then restore a backup, or copy the readable part with `mayfly salvage d --to NEW`",
		mayfly.ErrFormat:     "open d with the newer mayfly that wrote it",
		mayfly.ErrClockAhead: "correct the machine's clock",
	} {
		var out buffer
		if code := report(&out, adviseOpen(fmt.Errorf("open: %w", cause), "d")); code != exitError || !strings.Contains(out.String(), advice) {
			t.Errorf("%v: exit code %d, %q", cause, code, out.String())
		}
	}
}

// The message about a failed call names the fault, without the SDK's words about the request.
func TestAdviseEndpoint(t *testing.T) {
	e := &endpoint{Endpoint: sdk.Endpoint{URL: "http://there:8000"}}
	for want, cause := range map[string]error{
		"nothing listens at http://there:8000\n  next: start one":      &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		"host there not found\n  next: check the host in --endpoint":   &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "there"}},
		"http://there:8000 did not answer in time\n  next: check that": context.DeadlineExceeded,
		"read a page: Query: no room\n":                                &url.Error{Op: "Post", URL: "http://there:8000", Err: errors.New("no room")},
		"http://there:8000 does not serve the API of DynamoDB: it answered 404\n  next: set --endpoint to a server that does\n": &smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusNotFound}}, Err: &smithy.DeserializationError{Err: errors.New("invalid character '<'")},
		},
		"ThrottlingException: slow down\n": &smithy.GenericAPIError{Code: "ThrottlingException", Message: "slow down"},
	} {
		var out buffer
		err := fmt.Errorf("read a page: %w", &smithy.OperationError{ServiceID: "DynamoDB", OperationName: "Query", Err: fmt.Errorf("exceeded maximum number of attempts, 1: %w", cause)})
		if code := report(&out, e.advise(err)); code != exitError || !strings.HasPrefix(out.String(), "mayfly: "+want) {
			t.Errorf("%v: exit code %d, %q; want %q", cause, code, out.String(), want)
		}
	}
}
