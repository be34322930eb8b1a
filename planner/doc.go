// Package planner computes the needs and costs of a table: capacity, partitions, dollars per month
// in each capacity mode, and dollars per million expiries for each way to remove items on time. It
// is arithmetic over a workload and a price table: no network, no clock, no files.
//
//	report, err := planner.Make(planner.Workload{Writes: 10_000, ItemBytes: 150, Retention: 30 * 24 * time.Hour}, planner.Default())
//	report.WriteText(os.Stdout)
//
// # Terms
//
// A write unit is a write of 1 KB (1,024 bytes, rounded up per item; a transaction counts twice). A
// read unit is a strongly consistent read of 4 KB (eventually consistent half, transactional
// twice). A shape is traffic minute by minute. A track is the capacity of one kind, writes or
// reads, of the table or of one global index; each scales on its own. A month has 30 days.
//
// # Rules and sources
//
// D marks Amazon's documentation, S Amazon's support articles (re:Post knowledge centre), I an
// inference.
//
//   - Capacity is consumed / target, within minimum and maximum; target 20 to 90 %, 70 % by
//     default. D: AutoScaling.html
//   - Scale out once consumption has been above the target for 2 consecutive minutes. D, S
//   - Scale in once it has been 20 points or more below the target for 15 consecutive minutes
//     (50 % for a target of 70 %). S: dynamodb-auto-scaling. The developer guide says "below the
//     target": Band 0
//   - A continuing alarm repeats every minute: if the day's decreases do not allow a scale-in,
//     it follows as soon as they do. S: autoscaling-policy-cloudwatch-alarm
//   - A change takes some minutes: Delay, 2 by default. I ("a few minutes")
//   - Scaling in follows the highest of the 15 minutes, scaling out the higher of the 2. I
//   - Decreases: 4 at the start of each UTC day, one more each hour, never more than 4 at a
//     time; reads and writes of a table share them, each global index has its own. D:
//     ServiceQuotas.html
//   - Burst: the unused capacity of the last 300 s can be spent at any rate. D:
//     burst-adaptive-capacity.html
//   - Consumption above capacity and burst in a minute is throttled; the rest of the minute is
//     not. I (a minute is the step; traffic counts as even within it)
//   - An hour is billed at its highest provisioned capacity. I (the upper bound; for changes of
//     minutes the difference is a few percent)
//   - On demand serves 4,000 writes/s and 12,000 reads/s at first, then double the previous
//     peak, which counts after 30 minutes. D: on-demand-capacity-mode.html
//   - A partition has 1,000 write and 3,000 read units per second, in either mode, and holds 10
//     GB. D
//   - Storage: 100 bytes more per item, and per entry of each index. D
//   - Removal by Amazon's own TTL costs nothing; any other delete is a write, of the table and
//     of each index that has the item. D
package planner
