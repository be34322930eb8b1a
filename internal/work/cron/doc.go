// Package cron computes the instants of schedule expressions: at, rate and cron. It is pure; the
// caller passes the time.
//
//	at(2030-01-01T12:00:00)            one wall time
//	rate(5 minutes)                    an anchor, and every interval after it
//	cron(0 9 ? * MON-FRI *)            every wall time that six fields match: minutes hours day-of-month month day-of-week year
//	instant(2030-01-01T12:00:00.250)   ours: at, to the millisecond
//	every(250 milliseconds)            ours: rate, in milliseconds or seconds
//
// A wall time is the reading of the clocks in a zone. An occurrence is an instant of an expression:
// a whole second for at and cron, any instant for a rate, since its anchor may be any instant. All
// returned instants are in UTC.
//
//	Increasing:  Next(anchor, t) lies after t, and no occurrence lies between them
//	Last:        Last(anchor, t, u) is the last of the steps of Next from t that do not pass u
//	Once:        a wall time that a clock change skips does not occur; one that exists twice occurs once, at the first
//
// A rate is elapsed time: a day has 24 hours, whatever the clocks do. An at in a skipped hour is
// not lost: it occurs as if the clocks had not changed, so 02:30 occurs when the clocks show 03:30.
//
// The syntax, meaning and errors are from AWS's documentation (schedule-types in EventBridge
// Scheduler's user guide; "Creating a scheduled rule" in EventBridge's). Where it is silent, we
// chose:
//
//   - at in a skipped hour is as above; in a repeated hour the first counts. Years of an at are 1970 to 9999.
//   - An interval is at most 100 years of 365 days, and an interval of every is at least 10 milliseconds. A rate ends with the year 9999.
//   - Exactly one of the two day fields is ?; both, or neither, is refused.
//   - Names (JAN, MON) and L and W may be in any case. A name may replace its number anywhere, so MON#1 and FRIL are 2#1 and 6L.
//   - L alone as day of the week is Saturday, its last day. LW is the last weekday (Monday to Friday) of the month.
//   - A list may contain ranges, steps, L, LW, nW and nL; * and n#m stand alone.
//   - A range may wrap (22-4 hours, FRI-MON), and a step continues over the wrap; years do not wrap.
//   - A step is at most as large as its field: 0/90 minutes is surely not meant as 0.
//   - nW does not occur in a month without a day n, like n.
//   - A cron that no day matches (30 February) is accepted and never occurs.
package cron
