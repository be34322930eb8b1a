package stream

import (
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
)

// In a fleet, the worker that writes a row and arms it claims it. The owner of the row's partition
// leaves it to that worker, so that two workers do not try the same deadline: the second attempt
// would be refused, and cost a write unit. A claim ends when its worker has died, or when the
// deadline is overdue by the duration of a lease: a living worker may be slow, or have given up.
// The owner arms the row at its next poll then. An owner with overdue deadlines of its own waits
// longer, up to five leases in all: the other worker probably has a backlog as well, and second
// attempts would add to both.
//
// A claim is the hash of the worker's name, "/", and the instant of the write in ms.

// claim returns a claim of this worker.
func (s *Strategy) claim() string { return s.me + "/" + strconv.FormatInt(s.Now(), 10) }

// shortName returns a worker's name as it is in claims.
func shortName(worker string) string {
	h := fnv.New64a()
	h.Write([]byte(worker))
	return strconv.FormatUint(h.Sum64(), 36)
}

// lives reports whether a worker, by its short name, shared the newest division's leases lately.
func (s *Strategy) lives(worker string) bool {
	crew, _ := s.crews.Load(s.store.newest().leases())
	names, _ := crew.(map[string]bool)
	return names[worker]
}

// isClaimed reports whether a row that was found is left to another worker. A row of this worker's
// own becomes mine.
func (o *owner) isClaimed(r *row, item map[string]types.AttributeValue) bool {
	worker, written, ok := strings.Cut(attr.String(item[attrClaim]), "/")
	wrote, err := strconv.ParseInt(written, 10, 64)
	if o.s.alone || !ok || err != nil {
		return false
	}
	if r.mine = worker == o.s.me; r.mine {
		return false
	}
	now := o.s.Now()
	if wrote > now+slack { // by a clock that was wrong, so the deadline alone counts
		wrote = 0
	}
	lease := o.s.Leases.Duration.Milliseconds()
	behind := min(max(now-o.s.Armed.Next(), 0), 4*lease)
	return now < max(r.at, wrote)+lease+behind && o.s.lives(worker)
}
