package console

import "net/http"

// route registers the pages. To add a page, write a file for it and add a line here.
func (p *pages) route() {
	m := p.mux
	m.HandleFunc("GET "+root+"{$}", p.page(showNow))
	m.HandleFunc("GET /{$}", p.enter)
	m.HandleFunc("GET "+below+"{$}", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, root, http.StatusFound) })
	m.HandleFunc("GET "+below+"live/now", p.follow(followNow))
	m.HandleFunc("GET "+below+"asset/{hash}/{name}", serveAsset)
	m.HandleFunc("GET "+below+"theme", setTheme)
	m.HandleFunc("POST "+below+"theme", p.posted(setTheme))

	m.HandleFunc("GET "+below+"tables", p.page(showTables))
	m.HandleFunc("GET "+below+"new", p.page(showNewTable))
	m.HandleFunc("POST "+below+"new", p.change(createTable))
	m.HandleFunc("GET "+below+"table/{table}", p.page(showTable))
	m.HandleFunc("POST "+below+"table/{table}", p.change(changeTable))
	m.HandleFunc("GET "+below+"table/{table}/items", p.page(showItems))
	m.HandleFunc("POST "+below+"table/{table}/items", p.posted(p.page(showItems)))
	m.HandleFunc("GET "+below+"table/{table}/item", p.page(showItem))
	m.HandleFunc("POST "+below+"table/{table}/item", p.change(changeItem))

	m.HandleFunc("GET "+below+"table/{table}/timeline", p.page(showTimeline))
	m.HandleFunc("GET "+below+"table/{table}/stream", p.page(showStream))
	m.HandleFunc("GET "+below+"live/stream/{table}", p.follow(followStream))
	m.HandleFunc("GET "+below+"table/{table}/import", p.page(showImport))
	m.HandleFunc("POST "+below+"table/{table}/import", p.changeWithin(importLong, importBytes+bodyMost, importFile))
	m.HandleFunc("GET "+below+"table/{table}/export", p.exportItems)
	m.HandleFunc("POST "+below+"table/{table}/export", p.posted(p.exportItems))
	m.HandleFunc("POST "+below+"table/{table}/bulk", p.change(changeItems))
	m.HandleFunc("GET "+below+"partiql", p.page(showPartiQL))
	m.HandleFunc("POST "+below+"partiql", p.change(changePartiQL))
	m.HandleFunc("GET "+below+"schedules", p.page(showSchedules))
	m.HandleFunc("POST "+below+"schedules", p.change(changeSchedule))
	m.HandleFunc("GET "+below+"schedule", p.page(showSchedule))
	m.HandleFunc("GET "+below+"triggers", p.page(showTriggers))
	m.HandleFunc("POST "+below+"triggers", p.change(changeTrigger))
	m.HandleFunc("GET "+below+"reminders", p.page(showReminders))
	m.HandleFunc("GET "+below+"deadletters", p.page(showDeadLetters))
	m.HandleFunc("POST "+below+"deadletters", p.change(changeDeadLetters))
	m.HandleFunc("GET "+below+"lifecycles", p.page(showLifecycles))
	m.HandleFunc("GET "+below+"lifecycle/{lifecycle}", p.page(showLifecycle))
	m.HandleFunc("GET "+below+"lifecycle/{lifecycle}/drawing.svg", p.drawLifecycle)
	m.HandleFunc("GET "+below+"lifecycle/{lifecycle}/entity", p.page(showEntity))
	m.HandleFunc("POST "+below+"lifecycle/{lifecycle}/entity", p.change(changeEntity))
	m.HandleFunc("GET "+below+"guard", p.page(showGuard))
	m.HandleFunc("GET "+below+"clock", p.page(showClock))
	m.HandleFunc("POST "+below+"clock", p.change(moveClock))
	m.HandleFunc("GET "+below+"live/clock", p.follow(followClock))

	m.HandleFunc(below, p.page(showUnknown))
}
