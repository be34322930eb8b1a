package mayfly

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	"github.com/aws/smithy-go"
)

// nightlyOnly allows schedules of one group.
var nightlyOnly = []Policy{{Name: "nightly", JSON: `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"scheduler:*",` +
	`"Resource":["arn:aws:scheduler:*:*:schedule/nightly/*","arn:aws:scheduler:*:*:schedule-group/nightly"]}]}`}}

// codeOf returns the code of an API's error, or "" for none.
func codeOf(err error) string {
	var refused smithy.APIError
	if errors.As(err, &refused) {
		return refused.ErrorCode()
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// TestCredentialsLimitSchedules: the API of schedules obeys the policies of keys, and the audit log
// has the calls.
func TestCredentialsLimitSchedules(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit.json")
	db := open(t, "", Options{
		Credentials: []Credential{{AccessKey: "AKID", SecretKey: "secret", User: "ann", Policies: nightlyOnly}}, Audit: Audit{Path: log},
	})
	url := serve(t, db)
	client := scheduler.New(scheduler.Options{
		BaseEndpoint: &url, Region: "us-east-1", RetryMaxAttempts: 1, Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", ""),
	})
	ctx := t.Context()
	create := func(group string) string {
		_, err := client.CreateSchedule(ctx, &scheduler.CreateScheduleInput{
			Name: aws.String("s"), GroupName: aws.String(group), ScheduleExpression: aws.String("rate(1 day)"),
			FlexibleTimeWindow: &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeOff},
			Target:             &types.Target{Arn: aws.String(testFunction), RoleArn: aws.String(testRole)},
		})
		return codeOf(err)
	}
	_, err := client.CreateScheduleGroup(ctx, &scheduler.CreateScheduleGroupInput{Name: aws.String("nightly")})
	if codeOf(err) != "" {
		t.Fatal(err)
	}
	if got := create("nightly"); got != "" {
		t.Errorf("in the group: %s", got)
	}
	if got := create("default"); got != "AccessDeniedException" {
		t.Errorf("in another group: %q", got)
	}
	_, err = client.ListSchedules(ctx, &scheduler.ListSchedulesInput{})
	if got := codeOf(err); got != "AccessDeniedException" {
		t.Errorf("listing all: %q", got)
	}
	_, err = client.ListSchedules(ctx, &scheduler.ListSchedulesInput{GroupName: aws.String("nightly")})
	if got := codeOf(err); got != "" {
		t.Errorf("listing the group: %q", got)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`"user":"ann"`, `"operation":"scheduler:CreateSchedule"`, `"resource":"arn:aws:scheduler:us-east-1:000000000000:schedule/default/s"`, `"allowed":false`,
	} {
		if !strings.Contains(string(text), part) {
			t.Errorf("the audit log lacks %s:\n%s", part, text)
		}
	}
}

// TestRenewCredentials: keys can be replaced while the database is open. Invalid ones change nothing.
func TestRenewCredentials(t *testing.T) {
	var next atomic.Pointer[[]Credential]
	key := func(name string) Credential { return Credential{AccessKey: name, SecretKey: "secret"} }
	db := open(t, "", Options{
		Credentials: []Credential{key("first")},
		RenewCredentials: func() ([]Credential, error) {
			if list := next.Swap(nil); list != nil {
				return *list, nil
			}
			return nil, nil
		},
	})
	url := serve(t, db)
	list := func(accessKey string) string {
		client := dynamodb.New(dynamodb.Options{
			BaseEndpoint: &url, Region: "us-east-1", RetryMaxAttempts: 1, Credentials: credentials.NewStaticCredentialsProvider(accessKey, "secret", ""),
		})
		_, err := client.ListTables(t.Context(), nil)
		return codeOf(err)
	}
	if got := list("first"); got != "" {
		t.Fatal(got)
	}
	next.Store(&[]Credential{key("second")})
	for list("second") != "" {
		time.Sleep(10 * time.Millisecond) // within a second
	}
	if got := list("first"); got != "UnrecognizedClientException" {
		t.Errorf("the removed key: %q", got)
	}
	next.Store(&[]Credential{{AccessKey: "third"}})
	for next.Load() != nil {
		list("second")
		time.Sleep(10 * time.Millisecond)
	}
	if got := list("second"); got != "" {
		t.Errorf("after invalid ones: %q", got)
	}
}

// TestMetricsNeedAKey: with keys, the metrics are for those who have one, unless they are public.
func TestMetricsNeedAKey(t *testing.T) {
	for _, public := range []bool{false, true} {
		url := serve(t, open(t, "", Options{Credentials: []Credential{{AccessKey: "AKID", SecretKey: "secret"}}, MetricsPublic: public}))
		status := func(path, password string) int {
			r, err := http.NewRequestWithContext(t.Context(), "GET", url+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if password != "" {
				r.SetBasicAuth("AKID", password)
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			return answer.StatusCode
		}
		if open := status("/metrics", "") == http.StatusOK; open != public {
			t.Errorf("public %v: the metrics are open: %v", public, open)
		}
		if got := status("/metrics", "secret"); got != http.StatusOK {
			t.Errorf("with a key: %d", got)
		}
		for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/_mayfly/clock": 400} {
			if got := status(path, ""); got != want {
				t.Errorf("%s: got %d, want %d", path, got, want)
			}
		}
	}
}
