package timeseries

import "iter"

// Union returns the samples of one device from two places, such as the live table and an archive,
// in one order and without duplicates: of two with the same Key it takes the first place's. Both
// must be in the order of keys, or with newest in the opposite one, as Range returns them. An error
// of either ends the sequence.
func Union(first, second iter.Seq2[Sample, error], newest bool) iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		nextA, stopA := iter.Pull2(first)
		defer stopA()
		nextB, stopB := iter.Pull2(second)
		defer stopB()
		a, errA, moreA := nextA()
		b, errB, moreB := nextB()
		for moreA || moreB {
			if moreA && errA != nil || moreB && errB != nil {
				err := errA
				if !moreA || errA == nil {
					err = errB
				}
				yield(Sample{}, err)
				return
			}
			order := 0
			switch {
			case !moreB:
				order = -1
			case !moreA:
				order = 1
			default:
				if order = byKeyAndDevice(&a, &b); newest {
					order = -order
				}
			}
			s := a
			if order > 0 {
				s = b
			}
			if !yield(s, nil) {
				return
			}
			if order <= 0 {
				a, errA, moreA = nextA()
			}
			if order >= 0 {
				b, errB, moreB = nextB()
			}
		}
	}
}
