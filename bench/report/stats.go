// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// NearestRank is the value below or at which a share q of the sorted values lies: the nearest rank, so that it is always a
// value that was measured. It is NaN without values.
func NearestRank(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Spread is the middle and the ends of a figure over runs.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// spreadJSON is a Spread whose figures may be missing.
type spreadJSON struct {
	Median Seconds `json:"median"`
	Min    Seconds `json:"min"`
	Max    Seconds `json:"max"`
}

// MarshalJSON writes null for what was not measured.
func (s Spread) MarshalJSON() ([]byte, error) {
	return json.Marshal(spreadJSON{Seconds(s.Median), Seconds(s.Min), Seconds(s.Max)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Spread) UnmarshalJSON(text []byte) error {
	var j spreadJSON
	if err := json.Unmarshal(text, &j); err != nil {
		return err
	}
	*s = Spread{float64(j.Median), float64(j.Min), float64(j.Max)}
	return nil
}

// SpreadOf takes the median as the mean of the two middle values when their number is even.
func SpreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{math.NaN(), math.NaN(), math.NaN()}
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return Spread{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Min: sorted[0], Max: sorted[n-1]}
}

// Text shows the middle, and the ends when there are any.
func (s Spread) Text(verb string) string {
	if s.Min == s.Max {
		return fmt.Sprintf(verb, s.Median)
	}
	return fmt.Sprintf(verb+" ("+verb+".."+verb+")", s.Median, s.Min, s.Max)
}

// Ratios divides run by run: what was measured next to each other is compared with each other.
func Ratios(of, to []float64) []float64 {
	out := make([]float64, 0, len(of))
	for i := range min(len(of), len(to)) {
		out = append(out, of[i]/to[i])
	}
	return out
}

// Median is the middle of values that may be infinite; NaN without values.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	low, high := sorted[(len(sorted)-1)/2], sorted[len(sorted)/2]
	if low == high { // infinite ones too
		return low
	}
	return (low + high) / 2
}

// Interval is an estimate with the ends of its 95 % confidence interval. Known is false when there were too few rounds
// for one: Low and High are then the ends of what was measured.
type Interval struct {
	Estimate float64 `json:"estimate"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	Known    bool    `json:"known"`
}

const (
	// resamples is how often the bootstrap draws: the ends of an interval are then good to about 1 % of rank.
	resamples = 2000
	// fewest rounds that an interval is given for. Of less than three a bootstrap draws hardly anything but what was
	// measured.
	fewest = 3
)

// pairedRatio is the median of the ratios of rounds that were measured next to each other, with its bootstrap interval
// (percentiles of the medians of rounds drawn with replacement; Efron 1979). The draws are the same in every call.
func pairedRatio(of, to []float64) Interval {
	each := Ratios(of, to)
	draw := rand.New(rand.NewPCG(1, uint64(len(each))))
	return interval(Median(each), each, len(each) >= fewest, func() float64 {
		return Median(redraw(draw, each))
	})
}

// freeRatio is the ratio of the medians of measurements that were made apart from each other.
func freeRatio(of, to []float64) Interval {
	draw := rand.New(rand.NewPCG(2, uint64(len(of)+len(to))))
	ends := make([]float64, 0, len(of)*len(to))
	for _, a := range of {
		for _, b := range to {
			ends = append(ends, a/b)
		}
	}
	return interval(Median(of)/Median(to), ends, min(len(of), len(to)) >= fewest, func() float64 {
		return Median(redraw(draw, of)) / Median(redraw(draw, to))
	})
}

// interval draws, or takes the ends of what was measured when the number of rounds does not carry an interval.
func interval(estimate float64, measured []float64, known bool, draw func() float64) Interval {
	from := measured
	if known {
		from = make([]float64, resamples)
		for i := range from {
			from[i] = draw()
		}
	}
	sorted := slices.Sorted(slices.Values(from))
	low, high := 0.0, 1.0
	if known {
		low, high = 0.025, 0.975
	}
	return Interval{Estimate: estimate, Low: NearestRank(sorted, low), High: NearestRank(sorted, high), Known: known}
}

func redraw(draw *rand.Rand, values []float64) []float64 {
	out := make([]float64, len(values))
	for i := range out {
		out[i] = values[draw.IntN(len(values))]
	}
	return out
}

// text shows the estimate and what is known of how far it may be off.
func (i Interval) text() string {
	switch {
	case math.IsNaN(i.Estimate):
		return "-"
	case i.Known:
		return fmt.Sprintf("%.2f [%.2f, %.2f]", i.Estimate, i.Low, i.High)
	case i.Low == i.High:
		return fmt.Sprintf("%.2f", i.Estimate)
	default:
		return fmt.Sprintf("%.2f (%.2f..%.2f)", i.Estimate, i.Low, i.High)
	}
}

// Throughput is scheduler_perf's SchedulingThroughput of what was bound by the end of each second: the first second in
// which something was is dropped, as it began somewhere in the middle, and a second without any counts as part of the
// next one that has some. It is nil when less than two seconds had any (upstream: it cannot be measured then).
func Throughput(boundBy []int) []float64 {
	var samples []float64
	last, started, skipped := 0, false, 0
	for _, n := range boundBy {
		switch {
		case n == 0:
		case !started:
			started, last = true, n
		case n == last:
			skipped++
		default:
			each := float64(n-last) / float64(skipped+1)
			for range skipped + 1 {
				samples = append(samples, each)
			}
			last, skipped = n, 0
		}
	}
	return samples
}

// Buckets are those that scheduler_perf reports of samples.
func Buckets(samples []float64) map[string]float64 {
	sorted := slices.Sorted(slices.Values(samples))
	sum := 0.0
	for _, s := range sorted {
		sum += s
	}
	return map[string]float64{
		"Average": sum / float64(len(sorted)), "Perc50": NearestRank(sorted, 0.5), "Perc90": NearestRank(sorted, 0.9),
		"Perc95": NearestRank(sorted, 0.95), "Perc99": NearestRank(sorted, 0.99),
	}
}

func Mebi(bytes int64) float64 { return float64(bytes) / (1 << 20) }
