package timer_test

import (
	"time"

	"github.com/mayflydb/mayfly/internal/work/consume"
)

// holding returns a registry that call f when a consumer registers.
func holding(f func(consumer, streamARN string)) consume.Registry {
	return consume.Registry{Register: func(consumer, streamARN string) consume.Progress {
		f(consumer, streamARN)
		return ignored{}
	}}
}

type ignored struct{}

func (ignored) Checkpoint(string, string) {}
func (ignored) Passed(string, string)     {}
func (ignored) Taken(string, string)      {}
func (ignored) Rest(time.Time)            {}
func (ignored) Close()                    {}
