package guard

// readiness is the state of Run's preparation.
type readiness struct {
	yes      chan struct{}
	strategy Strategy // valid once yes is closed, as are
	runs     runner
	reason   string // see Stats.Reason
}

// Ready is closed when Run has checked the table and begun to guard it.
func (g *Guard) Ready() <-chan struct{} { return g.readiness.yes }

// Guarded returns the TTL attribute and the strategy, which Options may leave open, once Ready is
// closed; before, "" and Auto.
func (g *Guard) Guarded() (attribute string, by Strategy) {
	select {
	case <-g.readiness.yes:
		return g.o.Attribute, g.readiness.strategy
	default:
		return "", Auto
	}
}

func (g *Guard) beReady(by Strategy, s runner) {
	g.readiness.strategy, g.readiness.runs = by, s
	close(g.readiness.yes)
}
