package skew

import "testing"

// A slow answer does not narrow the present offset: the clocks may have drifted meanwhile, and it
// contradicts no later answer.
func TestAnswerThatWasLongOnItsWay(t *testing.T) {
	c := &bounds{}
	const second, day = 1000, 86_400_000
	c.take(day, day, day)   // no offset
	c.take(day, day, 2*day) // made when it was sent; since then the local clock has lost 10 s
	c.take(2*day+10*second, 2*day, 2*day)
	if c.slack > 0 || c.claim.made {
		t.Error("what is true contradicts it")
	}
}
