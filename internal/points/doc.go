// Package points keeps what happened in each minute, for CloudWatch's API: the number, sum, least
// and greatest of the values that a metric had.
//
// A [Series] is one metric of one table, index, operation or group. Adding a value to it costs a
// reading of the clock and a few atomic operations; there is no goroutine and no timer. The first
// value of a minute begins the minute's [Point]. A level, such as provisioned capacity, is noted
// when it changes, and has a point in every minute since.
//
// The clock of a [Recorder], the database's, decides about minutes. Points live in memory
// only. They end after [Retention], or earlier if there are more than [Options.Most]: the oldest
// minutes and ended levels end first, then the latest points of deleted tables. When the latest
// minute alone has that many, it gets no further metrics. The levels of tables that exist do not
// count.
package points
