package console_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/testkit/chrome"
)

// pictureMost is the size of a picture in bytes: docs/console.md has five.
const pictureMost = 200_000

// The pictures of docs/console.md show a shop in the evening. CONSOLE_PICTURES names the directory that
// keeps them, such as docs/pictures.
func TestPictures(t *testing.T) {
	b := chrome.Start(t)
	w := newShop(t)
	tab := b.Open(t, chrome.Desk)

	tab.Go(w.pages)
	tab.Wait(`document.querySelector("#rate .bar:not(.past)") && document.querySelector("#rate .past") && document.querySelector("#lateness .bar")`)
	keep(t, tab, "now")

	tab.Go(w.pages + "console/table/carts/items")
	tab.Choose("[name=index]", "by-user")
	tab.FollowText("Show")
	tab.Fill("[name=k0]", "ada")
	tab.FollowText("Show")
	tab.WaitText("main", "C-1007")
	keep(t, tab, "items")

	tab.FollowText("C-1007")
	tab.WaitText("main", "in 42s")
	keep(t, tab, "item")

	tab.Go(w.pages + "console/table/offers/timeline?next=24h&values=yes")
	tab.WaitText("main", "mistake: milliseconds")
	tab.WaitText("main", "Cliffs")
	keep(t, tab, "timeline")

	tab.Go(w.pages + "console/clock")
	tab.Click("details.moves summary")
	tab.Fill("details [name=by]", "2s")
	tab.FollowText("Advance")
	tab.WaitText("main", "4 deadlines passed")
	keep(t, tab, "clock")
}

// keep checks a picture of the window, and keeps it where CONSOLE_PICTURES says.
func keep(t *testing.T, tab *chrome.Tab, name string) {
	t.Helper()
	png := tab.PNG()
	if len(png) > pictureMost || len(png) < 10_000 {
		t.Errorf("the picture of %s has %d bytes", name, len(png))
	}
	dir := os.Getenv("CONSOLE_PICTURES")
	if dir == "" {
		return
	}
	must(t, os.MkdirAll(dir, 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "console-"+name+".png"), png, 0o644))
}

// newShop returns a server with the carts, sessions and offers of a shop, half past six in Berlin.
func newShop(t *testing.T) *world {
	t.Helper()
	now := time.Date(2026, 12, 1, 17, 30, 0, 0, time.UTC)
	w := newWorld(t, "shop", mayfly.Options{Start: now.Add(-5 * time.Minute), Frozen: true, ClockControl: mayfly.ClockControlOn})
	w.shopTable(t, "carts", "cart", "by-user", "user")
	w.shopTable(t, "offers", "offer", "", "")
	w.shopTable(t, "sessions", "session", "", "")
	w.openCarts(t, now)
	w.openOffers(t, now)
	w.openSessions(t, now)
	for range 10 { // so that the minutes of the past have their shares
		_, err := w.own.Clock().Advance(t.Context(), 30*time.Second)
		must(t, err)
	}
	return w
}

// shopTable makes a table, with an index if that has a name. Its items expire at "expires".
func (w *world) shopTable(t *testing.T, name, key, index, by string) {
	t.Helper()
	attribute := func(name string) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeTypeS}
	}
	in := &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest, AttributeDefinitions: []types.AttributeDefinition{attribute(key)},
		KeySchema:           []types.KeySchemaElement{{AttributeName: &key, KeyType: types.KeyTypeHash}},
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	}
	if index != "" {
		in.AttributeDefinitions = append(in.AttributeDefinitions, attribute(by))
		in.GlobalSecondaryIndexes = []types.GlobalSecondaryIndex{{
			IndexName: &index, KeySchema: []types.KeySchemaElement{{AttributeName: &by, KeyType: types.KeyTypeHash}},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}}
	}
	_, err := w.db.CreateTable(t.Context(), in)
	must(t, err)
	_, err = w.db.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName: &name, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("expires"), Enabled: aws.Bool(true)},
	})
	must(t, err)
}

// openCarts puts carts that expire in seconds, minutes and hours. Four expire within two seconds.
func (w *world) openCarts(t *testing.T, now time.Time) {
	t.Helper()
	users := []string{"ada", "grace", "linus"}
	things := []string{"desk lamp", "tea, 500 g", "garden chair", "umbrella", "notebook, A5", "kettle"}
	for i, left := range []int64{7260, 1, 2, 615, 1, 2, 95, 42, 3700, 18, 330, 64, 12, 1800, 151, 86400, 27, 840} {
		user := users[0]
		if i%3 == 2 || left < 3 {
			user = users[1+i%2]
		}
		w.putItem(t, "carts", map[string]types.AttributeValue{
			"cart": text(fmt.Sprintf("C-%d", 1000+i)), "user": text(user), "count": number(int64(1 + i%4)), "total": &types.AttributeValueMemberN{Value: fmt.Sprintf("%d.9", 12+7*i)},
			"first": text(things[i%len(things)]), "gift": &types.AttributeValueMemberBOOL{Value: i%5 == 0}, "expires": number(now.Unix() + left),
		})
	}
}

// openOffers puts offers that end during the day, most of them at midnight in Berlin. Three have
// milliseconds.
func (w *world) openOffers(t *testing.T, now time.Time) {
	t.Helper()
	midnight := time.Date(2026, 12, 1, 23, 0, 0, 0, time.UTC).Unix()
	for i := range int64(150) {
		ends := now.Unix() + 900 + 570*i
		switch {
		case i%3 == 0:
			ends = midnight
		case i%50 == 1:
			ends *= 1000
		}
		w.putItem(t, "offers", map[string]types.AttributeValue{
			"offer": text(fmt.Sprintf("O-%d", 200+i)), "percent": number(10 + 5*(i%7)), "expires": number(ends),
		})
	}
}

// openSessions puts sessions whose ends come in waves, from five minutes ago to the next hour.
func (w *world) openSessions(t *testing.T, now time.Time) {
	t.Helper()
	var batch []types.WriteRequest
	flush := func() {
		if len(batch) == 0 {
			return
		}
		out, err := w.db.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{"sessions": batch}})
		must(t, err)
		if len(out.UnprocessedItems) > 0 {
			t.Fatal("the server did not take all sessions")
		}
		batch = nil
	}
	for step := -10; step < 120; step++ {
		wave := 9 + 5*math.Sin(float64(step)/9) + 2*math.Sin(float64(step)/2.3)
		for i := range int64(wave) {
			id := fmt.Sprintf("s-%d-%d", step+10, i)
			batch = append(batch, types.WriteRequest{PutRequest: &types.PutRequest{Item: map[string]types.AttributeValue{
				"session": text(id), "agent": text(strings.Repeat("x", 20)), "expires": number(now.Unix() + int64(step)*30 + 3 + i),
			}}})
			if len(batch) == 25 {
				flush()
			}
		}
	}
	flush()
}
