// Package audit writes a log of requests: who asked for which operation on which resources, from
// which address, and what was decided.
//
// # Lines
//
// The log has one line of JSON for each request. Empty members are left out:
//
//	{"time":"2030-01-01T12:00:00.000Z","request_id":"…","user":"ana","access_key":"AKIA…","from":"10.0.0.7",
//	 "operation":"dynamodb:GetItem","accesses":[{"action":"dynamodb:GetItem","resource":"arn:…","keys":["…"]}],
//	 "allowed":false,"reason":"…","error":"AccessDeniedException"}
//
// Clients choose some of the texts. A character that is not printable is escaped and invalid UTF-8
// is replaced, so a text can neither end its line nor disturb a terminal. Texts and lists are cut at
// limits; keys_left_out and accesses_left_out count the rest. Otherwise a few large requests would
// fill the disk, or rotate the traces of others away.
//
// Keys of items are personal data in many tables, so by default they are not written. See Keys.
//
// # Guarantees
//
// Write returns after one write to the file under a mutex. A buffer and a goroutine would be faster
// and would lose lines when the process dies. No line is synced: a power cut may lose the last
// seconds, a crash of the process loses nothing. Lines of concurrent requests may be slightly out of
// order.
//
// If a write fails, for instance on a full disk, the request goes on. The failure is counted and
// reported, and the next successful line follows a line {"time":…,"lost":N}.
package audit
