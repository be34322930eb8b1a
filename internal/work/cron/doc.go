// Package cron is the arithmetic of schedule expressions: which instants at, rate and cron stand for. It is pure; the caller says what time it is.
//
//	at(2030-01-01T12:00:00)            one wall time
//	rate(5 minutes)                    an anchor, and every interval after it
//	cron(0 9 ? * MON-FRI *)            every wall time that six fields match: minutes hours day-of-month month day-of-week year
//	instant(2030-01-01T12:00:00.250)   ours: at, to the millisecond
//	every(250 milliseconds)            ours: rate, in milliseconds or seconds
//
// A wall time is what the clocks of a zone show. An occurrence is an instant for which an expression stands: a whole second for at and cron, anything for a
// rate, since its anchor may lie anywhere. All instants given are in UTC.
//
//	Increasing:  Next(anchor, t) lies after t, and nothing of the expression between them
//	Last:        Last(anchor, t, u) is where the steps of Next from t end that do not pass u
//	Once:        a wall time that the zone's clocks skip does not occur, and one that they show twice occurs at the first
//
// A rate is elapsed time: a day is 24 hours, whatever the clocks do. An at in a gap of the clocks is not lost: it occurs as if they had not been moved
// yet, so 02:30 occurs where 03:30 is shown.
//
// What AWS accepts, says and does is from its documentation (schedule-types in EventBridge Scheduler's user guide; "Creating a scheduled rule" in EventBridge's). Where
// that is silent this is the choice:
//
//   - at in a gap is as above, at in an overlap is the first. Years of an at are 1970 to 9999.
//   - An interval is at most 100 years of 365 days, and one of every at least 10 milliseconds. A rate ends with the year 9999.
//   - Exactly one of the two day fields is ?; both, or neither, is refused.
//   - Names (JAN, MON) and L and W may be in any case, and a name may stand where its number does, so MON#1 and FRIL are 2#1 and 6L.
//   - L alone as day of the week is Saturday, the last of it. LW is the last weekday (Monday to Friday) of the month.
//   - A list may hold ranges, steps, L, LW, nW and nL; * and n#m stand alone.
//   - A range may wrap (22-4 hours, FRI-MON), and a step goes on over the wrap; years do not wrap.
//   - A step is at most as large as its field: 0/90 minutes is surely not meant as 0.
//   - nW in a month without a day n does not occur in it, as n does not.
//   - A cron that no day ever matches (30 February) is accepted and has no occurrence.
package cron
