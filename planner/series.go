package planner

// seriesPoints is how many points a chart of a track has at most.
const seriesPoints = 720

// series is a track over time, thinned out: of each span the highest demand, the highest capacity, and what was refused.
type series struct {
	span                     int // minutes of a point
	demand, capacity, refuse []float64
}

func newSeries(minutes int) *series {
	span := (minutes + seriesPoints - 1) / seriesPoints
	n := (minutes + span - 1) / span
	return &series{span: span, demand: make([]float64, n), capacity: make([]float64, n), refuse: make([]float64, n)}
}

func (s *series) add(minute int, demand, capacity, refused float64) {
	i := minute / s.span
	s.demand[i], s.capacity[i] = max(s.demand[i], demand), max(s.capacity[i], capacity)
	s.refuse[i] += refused
}
