package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/lifecycle"
)

const day = 24 * time.Hour

const trialText = `
lifecycle: trial
attributes: {length: S}
states:
  - name: active
    next:
      - {to: ended, after: $length}
      - {to: paid}
  - name: paid
  - name: ended
`

// trials returns a database whose clock stands at noon, and its lifecycles. They have a definition
// of trials, and Ada's trial of 14 days.
func trials(ctx context.Context) (*mayfly.DB, *lifecycle.Lifecycles) {
	db, err := mayfly.Open("", mayfly.Options{Start: time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC), Frozen: true})
	if err != nil {
		log.Fatal(err)
	}
	l, err := lifecycle.New(lifecycle.Options{DB: db.DynamoDB(), Streams: db.Streams(), Now: db.Clock().Now, Registry: db.Registry(), Alone: true})
	if err != nil {
		log.Fatal(err)
	}
	d, err := lifecycle.Read(strings.NewReader(trialText), nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := l.Apply(ctx, *d, lifecycle.ApplyOptions{}); err != nil {
		log.Fatal(err)
	}
	if _, err := l.Create(ctx, "trial", "ada", length("14 days")); err != nil {
		log.Fatal(err)
	}
	return db, l
}

func length(text string) lifecycle.Item {
	value, err := lifecycle.Value(text)
	if err != nil {
		log.Fatal(err)
	}
	return lifecycle.Item{"length": value}
}

// advance moves the clock of a database.
func advance(ctx context.Context, db *mayfly.DB, by time.Duration) {
	if _, err := db.Clock().Advance(ctx, by); err != nil {
		log.Fatal(err)
	}
}

// Ada pays, so her trial does not end by itself.
func ExampleLifecycles_Move() {
	ctx := context.Background()
	db, l := trials(ctx)
	defer db.Close()

	e, err := l.Move(ctx, "trial", "ada", "paid")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(e.Kind, "from", e.From, "to", e.To)
	_, err = l.Move(ctx, "trial", "ada", "active")
	fmt.Println(errors.Is(err, lifecycle.ErrEnded))
	// Output:
	// moved from active to paid
	// true
}

// A longer trial ends later: Set computes the pending transition again.
func ExampleLifecycles_Set() {
	ctx := context.Background()
	db, l := trials(ctx)
	defer db.Close()

	e, err := l.Set(ctx, "trial", "ada", length("30 days"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(e.Kind, "and now", e.NextTo, "on", e.Next.Format(time.DateOnly))
	// Output:
	// changed and now ended on 2030-01-31
}

// The days of a pause do not count.
func ExampleLifecycles_Pause() {
	ctx := context.Background()
	db, l := trials(ctx)
	defer db.Close()

	if _, err := l.Pause(ctx, "trial", "ada"); err != nil {
		log.Fatal(err)
	}
	advance(ctx, db, 20*day)
	e, err := l.Resume(ctx, "trial", "ada")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(e.Kind, "and", e.NextTo, "on", e.Next.Format(time.DateOnly))
	// Output:
	// resumed and ended on 2030-02-04
}

// Support grants Ada one more week.
func ExampleLifecycles_Reschedule() {
	ctx := context.Background()
	db, l := trials(ctx)
	defer db.Close()

	now, err := l.Get(ctx, "trial", "ada")
	if err != nil {
		log.Fatal(err)
	}
	e, err := l.Reschedule(ctx, "trial", "ada", now.Next.Add(7*day))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(e.Kind, "to", e.Next.Format(time.DateOnly))
	// Output:
	// rescheduled to 2030-01-22
}

// Cancel keeps the entity, and Delete removes it. Neither calls a handler.
func ExampleLifecycles_Cancel() {
	ctx := context.Background()
	db, l := trials(ctx)
	defer db.Close()

	if _, err := l.Cancel(ctx, "trial", "ada"); err != nil {
		log.Fatal(err)
	}
	ada, err := l.Get(ctx, "trial", "ada")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ada.State, ada.Ended)
	if _, err := l.Delete(ctx, "trial", "ada"); err != nil {
		log.Fatal(err)
	}
	_, err = l.Get(ctx, "trial", "ada")
	fmt.Println(errors.Is(err, lifecycle.ErrNoEntity))
	// Output:
	// active cancelled
	// true
}

// The history says what happened to an entity, and how late.
func ExampleLifecycles_History() {
	ctx, stop := context.WithCancel(context.Background())
	db, l := trials(ctx)
	defer db.Close()
	ran := make(chan error, 1)
	go func() { ran <- l.Run(ctx) }()
	defer func() { stop(); <-ran }()
	<-l.Ready()

	advance(ctx, db, 15*day)
	events, err := l.History(ctx, "trial", "ada")
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range events {
		fmt.Println(e.At.Format(time.DateTime), e.Kind, e.To, "late by", e.Lateness())
	}
	runs, err := l.Runs(ctx, "trial")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(runs)
	// Output:
	// 2030-01-01 12:00:00 created active late by 0s
	// 2030-01-15 12:00:00 transition ended late by 0s
	// true
}

// Each lists the entities of a lifecycle, and Ahead the transitions that an entity has before it.
func ExampleLifecycles_Each() {
	ctx := context.Background()
	db, l := trials(ctx)
	defer db.Close()

	names, err := l.Names(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(names, "in", lifecycle.EntityTable("trial"))
	err = l.Each(ctx, "trial", func(e lifecycle.Entity) error {
		ahead, err := l.Ahead(ctx, "trial", e.ID, 10)
		for _, a := range ahead {
			fmt.Println(e.ID, "is", e.State, "and", a.To, "on", a.At.Format(time.DateOnly))
		}
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// [trial] in mayfly.lifecycle.trial
	// ada is active and ended on 2030-01-15
}

// A lifecycle with active entities is deleted only on request.
func ExampleLifecycles_DeleteLifecycle() {
	ctx := context.Background()
	db, l := trials(ctx)
	defer db.Close()

	_, err := l.DeleteLifecycle(ctx, "trial", lifecycle.DeleteOptions{})
	var underWay *lifecycle.UnderWay
	fmt.Println(errors.As(err, &underWay))
	cancelled, err := l.DeleteLifecycle(ctx, "trial", lifecycle.DeleteOptions{Cancel: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(cancelled, "cancelled")
	_, _, err = l.Definition(ctx, "trial")
	fmt.Println(errors.Is(err, lifecycle.ErrNoLifecycle))
	// Output:
	// true
	// 1 cancelled
	// true
}

// A definition draws itself, for terminals and for pages.
func ExampleDefinition_Text() {
	d, err := lifecycle.Read(strings.NewReader(trialText), nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("it starts with", d.StartState())
	fmt.Print(d.Text())
	fmt.Println(strings.HasPrefix(d.SVG(), "<svg"), strings.Contains(d.SVGWithCounts(map[string]int{"active": 1234}), "1234"))
	// Output:
	// it starts with active
	// trial, in UTC
	//
	// ● active
	// ├─ after $length ─▶ ended
	// └─ by hand ───────▶ paid
	//
	// ◉ ended
	//
	// ◉ paid
	// true true
}

// Check finds all faults of a definition at once, with their places.
func ExampleDefinition_Check() {
	d := lifecycle.Definition{Name: "trial", States: []lifecycle.State{
		{Name: "active", Next: []lifecycle.Transition{{To: "end", After: "14 dys"}}},
		{Name: "ended"},
	}}
	for _, f := range lifecycle.FaultsOf(d.Check(nil)) {
		fmt.Println(f.Path+":", f.Text)
	}
	// Output:
	// states[0].next[0].to: unknown state "end"
	// states[0].next[0].after: invalid length of time "14 dys"; use 90s, 36h, "1d 12h", "2 weeks", "1 month", "3 business days" or "4 business hours", up to 100 years
}
