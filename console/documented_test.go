package console

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The limits on the page of docs are the ones of the code.
func TestDocumentedLimits(t *testing.T) {
	page, err := os.ReadFile("../docs/console.md")
	if err != nil {
		t.Fatal(err)
	}
	_, limits, found := strings.Cut(string(page), "\n## Limits\n")
	if !found {
		t.Fatal("the page has no limits")
	}
	for _, row := range []string{
		fmt.Sprintf("| tables on a page; schedules, dead letters | %d |", same3(tablesPage, schedulesPage, lettersPage)),
		fmt.Sprintf("| items on a page | %d, 200 or %s |", pageDefault, grouped(pageMost)),
		fmt.Sprintf("the %d most frequent attributes; %d characters of a value |", columnsMost, cellMost),
		fmt.Sprintf("| filters of a query | %d,", filtersMost),
		fmt.Sprintf("| an item's page | %s values, %s characters of a text, %d bytes of a binary value, %d elements", grouped(valuesMost), grouped(textMost), bytesMost, elementsMost),
		fmt.Sprintf("| items in one bulk change | %s |", grouped(bulkMost)),
		fmt.Sprintf("| export | %s items;", grouped(exportMost)),
		fmt.Sprintf("| import | %s items or %d MiB; one at a time, for %.0f minutes at most.", grouped(importItems), importBytes>>20, importLong.Minutes()),
		fmt.Sprintf("| timeline | %d bars and %d listed items;", timelineSteps, timelineKeys),
		fmt.Sprintf("| deadlines and TTL values read by a Scan | %s items, %s read units or %.0f s |", grouped(scanMost), grouped(scanUnits), scanFor.Seconds()),
		fmt.Sprintf("| PartiQL | %s characters, %d items on a page |", grouped(statementMost), pageDefault),
		fmt.Sprintf("| stream | %d open shards, %d records of each in a second; the page shows the newest %d of a second, counts the others, and keeps 500 |", shardsMost, recordsMost, rowsMost),
		fmt.Sprintf("| reminders | the next %d of %s read |", remindersShown, grouped(remindersRead)),
		fmt.Sprintf("| lifecycles | %d entities listed, %s counted |", entitiesShown, grouped(entitiesRead)),
		fmt.Sprintf("| live pages at the same time | %d;", liveMost),
		fmt.Sprintf("| wait for the endpoint | %.0f s |", callMost.Seconds()),
	} {
		if !strings.Contains(limits, row) {
			t.Errorf("the page does not say: %s", row)
		}
	}
}

// same3 returns a number that three constants share, or -1.
func same3(a, b, c int) int {
	if a != b || a != c {
		return -1
	}
	return a
}
