package planner

// seriesPoints is the maximum number of points in a chart of a track.
const seriesPoints = 720

// series is a track over time, thinned out: for each span the highest demand, the highest capacity
// and the throttled units.
type series struct {
	span                     int // minutes per point
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
