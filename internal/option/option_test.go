package option_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/mayflydb/mayfly/internal/option"
)

func TestAddressHidesPasswords(t *testing.T) {
	for text, want := range map[string]string{
		"http://127.0.0.1:8000": "http://127.0.0.1:8000", "nonsense": "nonsense", "": "",
		"http://u:p@h/x": "http://…@h/x", "http://u:p@q@h": "http://…@h", "u:p@h": "…@h", "http://u:p@h:x": "http://…@h:x", "://u:p@h": "://…@h",
	} {
		if got := option.Address(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestComplaintsNameTheirOptions(t *testing.T) {
	var all option.Complaints
	all.AddIf(false, "Table", "missing")
	all.AddIf(true, "Batch", "%d is too many", 101)
	all.Add("File", "cannot be read: %w", fs.ErrNotExist)
	all.Join(nil)
	all.Join(&option.Error{Options: []string{"Mark", "Archive"}, Err: errors.New("not with batches")})
	all.Join(errors.New("set either table or stream"))
	err := all.Err("guard: ")
	const want = "guard: Batch: 101 is too many\nguard: File: cannot be read: file does not exist\nguard: Mark, Archive: not with batches\nguard: set either table or stream"
	if err.Error() != want {
		t.Errorf("the error is %q; want %q", err, want)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%q hides its cause", err)
	}
	var names []string
	for _, part := range option.Split(errors.Join(err, nil)) {
		if about, ok := errors.AsType[*option.Error](part); ok {
			names = append(names, about.Options...)
		}
	}
	if got := fmt.Sprint(names); got != "[Batch File Mark Archive]" {
		t.Errorf("the complaints are about %s; want [Batch File Mark Archive]", got)
	}
}

func TestNoComplaintIsNoError(t *testing.T) {
	var all option.Complaints
	if err := all.Err("x: "); err != nil {
		t.Errorf("options without complaints are the error %q", err)
	}
	if all := option.Split(nil); all != nil {
		t.Errorf("no error splits into %v", all)
	}
}

// The text after a colon in a message is a cause, not a complaint of its own.
func TestSplitKeepsCausesTogether(t *testing.T) {
	err := fmt.Errorf("%w for %w", fs.ErrNotExist, fs.ErrPermission)
	if all := option.Split(fmt.Errorf("open: %w", err)); len(all) != 1 {
		t.Errorf("one complaint with two causes splits into %d", len(all))
	}
}
