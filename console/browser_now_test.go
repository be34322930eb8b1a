package console_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/mayflydb/mayfly/internal/testkit/chrome"
)

func TestBrowserNow(t *testing.T) {
	b := chrome.Start(t)
	everywhere(t, func(t *testing.T, w *world) {
		for _, view := range w.views() {
			t.Run(view.Name, func(t *testing.T) {
				tab := b.Open(t, view)
				tab.Go(w.pages)
				tab.WaitText("h1", "Now")
				if w.own == nil {
					tab.WaitText("main", "Live values are read from mayfly's metrics, and this endpoint has none for this page.")
					tab.Picture("missing")
					tab.FollowText("table")
					tab.WaitText("h1", "Tables")
					return
				}
				calls(t, w, tab, view.Name)
				alarm(t, w, tab, "alarm-"+view.Name)
				covered(t, w, tab)
			})
		}
	})
	t.Run("backlog", func(t *testing.T) {
		w := worlds["mayfly"](t)
		for _, view := range w.views() {
			t.Run(view.Name, func(t *testing.T) { backlog(t, w, b.Open(t, view), "flood-"+view.Name) })
		}
	})
	t.Run("expirations", func(t *testing.T) {
		w := worlds["mayfly"](t)
		for _, view := range w.views() {
			t.Run(view.Name, func(t *testing.T) { expirations(t, w, b.Open(t, view), "carts-"+view.Name) })
		}
	})
}

// calls counts calls while the page is open.
func calls(t *testing.T, w *world, tab *chrome.Tab, table string) {
	w.newTable(t, table)
	row := `[...document.querySelectorAll("#calls tbody tr")].find(r => r.cells[0].innerText === "CreateTable")`
	tab.Wait(row)
	before := chrome.Eval[string](tab, row+".cells[1].innerText")
	w.newTable(t, table+"-2")
	tab.Wait(row + ".cells[1].innerText !== " + fmt.Sprintf("%q", before)) // counted, without a reload
	tab.Wait(row + `.cells[5].innerText.endsWith("s")`)                    // a latency
	tab.Wait(`document.querySelectorAll("#cards .card").length === 5`)
	tab.WaitText("#cards", "calls per second")
	tab.WaitText("#cards", "due and not yet removed")
}

// alarm makes one happen, and goes where it leads.
func alarm(t *testing.T, w *world, tab *chrome.Tab, table string) {
	w.newTable(t, table)
	w.put(t, table, "one", w.now().Add(time.Hour).UnixMilli()) // TTL is in seconds
	text := "Table " + table + " got 1 TTL value since the server's start that looks like a mistake: milliseconds."
	tab.WaitText("#alarms", text)
	tab.Picture("alarm")
	tab.Follow(fmt.Sprintf(`#alarms a[href*="/%s/"]`, table))
	tab.WaitText("h1", table)
	tab.WaitText("main", "mistake: milliseconds")
	tab.WaitText("main", "divide it by 1,000")
}

// covered hides the page, which ends its events, and shows it again.
func covered(t *testing.T, w *world, tab *chrome.Tab) {
	before := w.live.all.Load()
	tab.Press("g", "n")
	tab.Wait(`document.querySelector("#cards .card")`)
	w.follow(t, 1)
	tab.Cover()
	w.follow(t, 0)
	tab.Uncover()
	w.follow(t, 1)
	tab.Press("g", "t")
	tab.WaitText("h1", "Tables")
	w.follow(t, 0)
	if n := w.live.all.Load() - before; n != 2 {
		t.Errorf("the page asked for events %d times, not at first and when it was seen again", n)
	}
}

// expirations tests the chart: upcoming deadlines and, once the clock has moved, past ones.
func expirations(t *testing.T, w *world, tab *chrome.Tab, table string) {
	w.newTable(t, table)
	for i := range int64(40) {
		w.put(t, table, fmt.Sprint(i), w.now().Unix()+30+60*i)
	}
	tab.Go(w.pages)
	shown := func(class string) string {
		return fmt.Sprintf(`[...document.querySelectorAll("#rate .bar%s")].filter(e => e.getBoundingClientRect().width > 0)`, class)
	}
	now := `[...document.querySelectorAll("#rate .here")].map(e => e.getBoundingClientRect()).find(r => r.height > 0).x`
	tab.Wait(shown(":not(.past)") + ".length >= 40")
	if !chrome.Eval[bool](tab, shown(":not(.past)")+".every(e => e.getBoundingClientRect().x >= "+now+" - 1)") {
		t.Error("what is to come is not to the right of now")
	}
	if !chrome.Eval[bool](tab, `(() => {
		const svg = [...document.querySelectorAll("#rate svg")].map(e => e.getBoundingClientRect()).find(r => r.width > 0);
		return Math.abs(`+now+` - (svg.left + svg.right) / 2) < svg.width / 15;
	})()`) {
		t.Error("now is not in the middle")
	}
	for _, text := range []string{"5 minutes ago", "now", "in an hour"} {
		tab.Wait(fmt.Sprintf(`[...document.querySelectorAll("#rate text")].some(e => e.textContent === %q && e.getBoundingClientRect().width > 0)`, text))
	}
	for range 4 { // a minute each, so that the past has several bars
		if _, err := w.own.Clock().Advance(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		tab.Wait(shown(".past") + ".length > 0")
	}
	if !chrome.Eval[bool](tab, shown(".past")+".every(e => e.getBoundingClientRect().right <= "+now+" + 1)") {
		t.Error("the past is not to the left of now")
	}
	tab.WaitText("#lateness", "p50")
	tab.WaitText("#lateness", "p99")
	tab.Wait(`document.querySelector("#lateness .bar")`)
	tab.WaitText("#cards", "lateness p50")
	tab.WaitText("main", "since this page was opened, or since the server's start if nothing has expired since")
	tab.Picture("expirations")
	chrome.Eval[bool](tab, `(document.querySelector("#lateness").scrollIntoView(), true)`)
	tab.Picture("lateness")
}

// backlogBatches is the most batches of 25 items that each of the four writers writes: the items of
// several seconds, while the page counts the backlog once a second.
const backlogBatches = 4000

// backlog writes items whose deadlines have passed, faster than they are removed, until the page
// shows a backlog. Then the writers stop, and the items are removed.
func backlog(t *testing.T, w *world, tab *chrome.Tab, table string) {
	w.newTable(t, table)
	tab.Go(w.pages)
	card := `Number([...document.querySelectorAll("#cards .card")].find(e => e.innerText.includes("due and not yet removed")).querySelector(".big").innerText.replaceAll(",", ""))`
	tab.Wait(`document.querySelectorAll("#cards .card").length === 5`)
	ctx, stop := context.WithCancel(t.Context())
	var writers errgroup.Group
	t.Cleanup(func() {
		stop()
		_ = writers.Wait() // the test has failed already, or has seen the error
	})
	passed := &types.AttributeValueMemberN{Value: strconv.FormatInt(w.now().Unix()-60, 10)}
	for i := range 4 {
		writers.Go(func() error {
			for n := 0; n < 25*backlogBatches && ctx.Err() == nil; n += 25 {
				var puts []types.WriteRequest
				for k := range 25 {
					puts = append(puts, types.WriteRequest{PutRequest: &types.PutRequest{Item: map[string]types.AttributeValue{"id": text(fmt.Sprint(i, "-", n+k)), "expires": passed}}})
				}
				if _, err := w.db.BatchWriteItem(context.WithoutCancel(ctx), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{table: puts}}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	tab.Wait(card + " > 0")
	stop()
	if err := writers.Wait(); err != nil {
		t.Fatal(err)
	}
	tab.Picture("backlog")
	tab.Wait(card + " === 0")
}
