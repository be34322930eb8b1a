package console

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/reminder"
	"github.com/mayflydb/mayfly/internal/work/resolve"
	"github.com/mayflydb/mayfly/lifecycle"
)

// ownTables begins the names of the tables in which mayfly keeps its timers.
const ownTables = "mayfly."

// deed describes the event of a deadline in words, with links: an item of a visitor's table expires,
// and the items of mayfly's own tables are timers. over means that it has happened.
func (d dueItem) deed(over bool) node {
	key := d.item()
	text := func(name string) string {
		s, _ := key[name].(*types.AttributeValueMemberS)
		if s == nil {
			return ""
		}
		return s.Value
	}
	verb := func(to, did string) string {
		if over {
			return did
		}
		return to
	}
	link := func(path, name string) node { return el("a", has("href", path), words(clip(name, cellMost))) }
	if group, ok := strings.CutPrefix(d.table, ownTables+"schedules."); ok {
		if strings.HasPrefix(text("part"), "token#") {
			return words("a token of the schedule " + text("name") + verb(" expires", " expired"))
		}
		return el("span", words("schedule "), link(schedulePath(group, text("name")), text("name")), words(verb(" fires", " fired")))
	}
	if name, ok := strings.CutPrefix(d.table, lifecycle.EntityTable("")); ok {
		what := verb(" moves on", " moved on")
		if text("part") != "next" {
			what = verb(": kept data expires", ": kept data expired")
		}
		return el("span", words("entity "), link(entityPath(name, text("entity")), text("entity")), words(" of "), link(lifecyclePath(name), name), words(what))
	}
	switch d.table {
	case reminder.TableName:
		return el("span", words("a "), link(below+"reminders", "reminder"), words(verb(" fires", " fired")))
	case deliver.RetriesTable:
		return words("a failed delivery " + verb("is", "was") + " tried again")
	case resolve.RecordedTable:
		return words("the record of a delivery to " + text("arn") + verb(" expires", " expired"))
	case deliver.DeadLettersTable:
		return el("span", words("a "), link(below+"deadletters", "dead letter"), words(verb(" expires", " expired")))
	}
	names := slices.Sorted(maps.Keys(key)) // which one is the partition key is not known here
	shown := keyText(key, names)
	path := tablePath(d.table) + "/item?" + url.Values{"key": {urlKey(d.key)}}.Encode()
	if over { // the item is gone; the stream has its record
		path = tablePath(d.table) + "/stream?" + url.Values{"event": {"expired"}, "from": {"oldest"}, "q": {keyText(key, names[:min(len(names), 1)])}}.Encode()
	}
	return el("span", link(path, shown), words(" of "), link(tablePath(d.table)+"/items", d.table), words(verb(" expires", " expired")))
}
