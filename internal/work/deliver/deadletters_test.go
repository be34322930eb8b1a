package deliver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/target"
)

// all lists the dead letters that match, a few at a time, by their ids.
func (e *endpoint) all(t *testing.T, f deliver.DeadLetterFilter, limit int) (found []string) {
	t.Helper()
	for from := ""; ; {
		page, next, err := deliver.ListDeadLetters(t.Context(), e.db, f, limit, from)
		must(t, err)
		if len(page) > limit {
			t.Fatalf("%d on a page of %d", len(page), limit)
		}
		for _, l := range page {
			found = append(found, l.ID)
		}
		if from = next; from == "" {
			slices.Sort(found)
			return found
		}
	}
}

// Dead letters are listed page by page and by subject, read, redriven with new attempts, and
// deleted; with bodies of any size.
func TestDeadLetters(t *testing.T) {
	everywhere(t, mayfly.Options{}, func(t *testing.T, e *endpoint) {
		if got := e.all(t, deliver.DeadLetterFilter{}, 10); len(got) > 0 {
			t.Errorf("there are %v before there was any", got)
		}
		if _, found, err := deliver.GetDeadLetter(t.Context(), e.db, "a"); found || err != nil {
			t.Errorf("got one: %v", err)
		}
		var well atomic.Bool
		answer := func(code string) answers {
			return func(context.Context, target.Delivery) error {
				if well.Load() {
					return nil
				}
				return target.Permanent(code, "because")
			}
		}
		p := e.courier(t, deliver.Options{Backoff: soon}, map[string]answers{"arn:x:1": answer("Gone"), "arn:x:2": answer("Denied"), "arn:y": answer("Gone")}, target.Limits{})
		byTarget := map[string][]string{}
		var ids []string
		large := []byte(strings.Repeat("0123456789", 40<<10))
		rough := noise(900 << 10)
		for i := range 60 {
			id, arn := fmt.Sprint("job", i), []string{"arn:x:1", "arn:x:2", "arn:y"}[i%3]
			ids = append(ids, id)
			byTarget[arn] = append(byTarget[arn], id)
			p.send(t, id, to(arn), func(j *deliver.Parcel) {
				j.Delivery.Source = fmt.Sprint("arn:source:", i%2)
				switch i {
				case 0:
					j.Delivery.Body = large
				case 1:
					j.Delivery.Body = rough
				}
			})
		}
		p.isDone(t, ids...)
		slices.Sort(ids)
		for _, limit := range []int{1, 7, 60, 1000} {
			if got := e.all(t, deliver.DeadLetterFilter{}, limit); !slices.Equal(got, ids) {
				t.Errorf("by %d: %v", limit, got)
			}
		}
		both := append(slices.Clone(byTarget["arn:x:1"]), byTarget["arn:x:2"]...)
		for _, test := range []struct {
			f    deliver.DeadLetterFilter
			want []string
		}{
			{deliver.DeadLetterFilter{Target: "arn:y"}, byTarget["arn:y"]},
			{deliver.DeadLetterFilter{Target: "arn:x:*"}, both},
			{deliver.DeadLetterFilter{Target: "*"}, ids},
			{deliver.DeadLetterFilter{Code: "Denied"}, byTarget["arn:x:2"]},
			{deliver.DeadLetterFilter{Code: "Denied", Target: "arn:y"}, nil},
			{deliver.DeadLetterFilter{Source: "arn:source:0", Target: "arn:y"}, slices.DeleteFunc(slices.Clone(byTarget["arn:y"]), func(id string) bool {
				return int(id[len(id)-1]-'0')%2 == 1
			})},
		} {
			want := slices.Sorted(slices.Values(test.want))
			if got := e.all(t, test.f, 5); !slices.Equal(got, want) {
				t.Errorf("%+v: %v, want %v", test.f, got, want)
			}
		}
		for id, body := range map[string][]byte{"job0": large, "job1": rough, "job2": []byte("body of job2")} {
			letter, found, err := deliver.GetDeadLetter(t.Context(), e.db, id)
			must(t, err)
			if !found || string(letter.Body) != string(body) {
				t.Errorf("%s: %v, %d bytes", id, found, len(letter.Body))
			}
		}
		for _, token := range []string{"x", `""`, `{"id":1}`} {
			if _, _, err := deliver.ListDeadLetters(t.Context(), e.db, deliver.DeadLetterFilter{}, 10, token); !errors.Is(err, deliver.ErrBadToken) {
				t.Errorf("token %s: %v", token, err)
			}
		}

		n, err := deliver.DeleteDeadLetters(t.Context(), e.db, "job4", "nothing", "", "job7")
		must(t, err)
		if left := e.all(t, deliver.DeadLetterFilter{}, 100); n != 2 || len(left) != 58 {
			t.Errorf("deleted %d, left %d", n, len(left))
		}
		well.Store(true)
		n, err = deliver.RedriveDeadLetters(t.Context(), e.db, "job0", "job1", "nothing", "job4", "job2")
		must(t, err)
		if n != 3 {
			t.Errorf("%d redriven", n)
		}
		await(t, "they are delivered", func() (ok bool) {
			p.read(func() { ok = p.ended["job0"].Delivered && p.ended["job1"].Delivered && p.ended["job2"].Delivered })
			return ok
		})
		if p.body("job0 1") != string(large) || p.body("job1 1") != string(rough) || p.body("job2 1") != "body of job2" {
			t.Error("a body has changed")
		}
		redriven := map[string]bool{}
		page, _, err := deliver.ListDeadLetters(t.Context(), e.db, deliver.DeadLetterFilter{Target: "arn:y"}, 100, "")
		must(t, err)
		for _, l := range page {
			redriven[l.ID] = true
			_, err := deliver.RedriveDeadLetters(t.Context(), e.db, l.ID)
			must(t, err)
		}
		if len(redriven) != 19 || redriven["job2"] {
			t.Errorf("redriven %v", slices.Sorted(maps.Keys(redriven)))
		}
		await(t, "all of a target are delivered", func() (ok bool) {
			p.read(func() {
				ok = true
				for id := range redriven {
					ok = ok && p.ended[id].Delivered
				}
			})
			return ok
		})
		await(t, "nothing is left of them", func() bool {
			return e.parked(t) == 0 && len(e.all(t, deliver.DeadLetterFilter{}, 100)) == 36
		})
		if n := e.items(t, deliver.DeadLettersTable); n != 36 {
			t.Errorf("%d items are left of 36 dead letters", n)
		}
	})
}

// before does something before the first call that deletes.
type before struct {
	dynamodb.HTTPClient
	once *sync.Once
	what func()
}

func (b before) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".DeleteItem") || bytes.Contains(body, []byte(`"DeleteRequest"`)) {
		b.once.Do(b.what)
	}
	return b.HTTPClient.Do(r)
}

// A redriven letter that fails again before its deletion is a dead letter again, with its whole
// body.
func TestRedrivenInVain(t *testing.T) {
	for _, size := range []int{10, 900 << 10} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			e := open(t, "", mayfly.Options{})
			var tries atomic.Int64
			p := e.courier(t, deliver.Options{Backoff: soon}, map[string]answers{"arn:x": func(context.Context, target.Delivery) error {
				return target.Permanent("Gone", fmt.Sprint("try ", tries.Add(1)))
			}}, target.Limits{})
			body := noise(size)
			p.send(t, "a", to("arn:x"), func(j *deliver.Parcel) { j.Delivery.Body = body })
			p.isDone(t, "a")
			try := func(n int) func() bool {
				return func() bool {
					letter, found, _ := deliver.GetDeadLetter(t.Context(), e.db, "a")
					return found && letter.Message == fmt.Sprint("try ", n) && string(letter.Body) == string(body)
				}
			}
			await(t, "it is a dead letter", try(1))
			items := e.items(t, deliver.DeadLettersTable)
			o := e.db.Options()
			o.HTTPClient = before{o.HTTPClient, &sync.Once{}, func() { await(t, "it is one again", try(2)) }}
			n, err := deliver.RedriveDeadLetters(t.Context(), dynamodb.New(o), "a")
			must(t, err)
			if n != 1 || !try(2)() || e.items(t, deliver.DeadLettersTable) != items {
				t.Errorf("%d redriven, it is a dead letter: %v, of %d items in place of %d", n, try(2)(), e.items(t, deliver.DeadLettersTable), items)
			}
			n, err = deliver.DeleteDeadLetters(t.Context(), e.db, "a")
			must(t, err)
			if left := e.items(t, deliver.DeadLettersTable); n != 1 || left != 0 {
				t.Errorf("%d deleted, %d items left", n, left)
			}
		})
	}
}
