package lifecycle_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/lifecycle"
)

// A parcel waits for its recipient, who gets a reminder, and goes back. The example moves the clock
// of the embedded database; at any other endpoint time passes.
func Example() {
	db, err := mayfly.Open("", mayfly.Options{Start: time.Date(2030, 3, 1, 12, 0, 0, 0, time.UTC), Frozen: true})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	l, err := lifecycle.New(lifecycle.Options{
		DB: db.DynamoDB(), Streams: db.Streams(), Now: db.Clock().Now, Registry: db.Registry(), Alone: true,
		Handlers: map[string]lifecycle.Handler{
			"remind": func(_ context.Context, c lifecycle.Call) error {
				fmt.Println(c.Due.Format(time.DateTime), "remind", c.Attributes["name"], "of", c.Entity)
				return nil
			},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- l.Run(ctx) }()
	defer func() { cancel(); <-ran }()
	<-l.Ready()

	_, err = l.Apply(ctx, lifecycle.Definition{
		Name: "parcel", Zone: "Europe/Paris", Attributes: map[string]string{"name": "S"},
		States: []lifecycle.State{
			{Name: "waiting", Next: []lifecycle.Transition{{To: "reminded", After: "3 days", At: "09:00", Handler: "remind"}, {To: "fetched"}}},
			{Name: "reminded", Next: []lifecycle.Transition{{To: "returned", After: "1 week"}, {To: "fetched"}}},
			{Name: "fetched"},
			{Name: "returned"},
		},
	}, lifecycle.ApplyOptions{})
	if err != nil {
		log.Fatal(err)
	}
	name, _ := lifecycle.Value("Ada")
	if _, err := l.Create(ctx, "parcel", "p-1", lifecycle.Item{"name": name}); err != nil {
		log.Fatal(err)
	}
	if _, err := db.Clock().Advance(ctx, 5*24*time.Hour); err != nil {
		log.Fatal(err)
	}
	p, err := l.Get(ctx, "parcel", "p-1")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("it is", p.State, "and will be", p.NextTo, p.Next.Format(time.DateTime))
	// Output:
	// 2030-03-05 08:00:00 remind Ada of p-1
	// it is reminded and will be returned 2030-03-12 08:00:00
}
