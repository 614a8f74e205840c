// SPDX-License-Identifier: Apache-2.0

package profilecheck

import (
	"fmt"
	"math"

	"github.com/kumiki-scheduler/kumiki/apm/bottleneck"
)

// The ratio of the measured and the predicted gain that is asked for.
const (
	leastRatio = 0.7
	mostRatio  = 1.3
)

// Gain compares what the removal of a cause changed with what was predicted.
type Gain struct {
	// Of is what is compared: pods/s, or waiting pods.
	Of string `json:"of"`
	// Before is the value with the cause, Predicted and Measured are those without it.
	Before    float64 `json:"before"`
	Predicted float64 `json:"predicted"`
	Measured  float64 `json:"measured"`
	// AtLeast is set if Predicted is a lower bound.
	AtLeast bool `json:"atLeast,omitempty"`
	// Unknown is why nothing was predicted; then there is nothing else.
	Unknown string `json:"unknown,omitempty"`
}

// Ratio is the measured gain divided by the predicted one.
func (g *Gain) Ratio() float64 { return (g.Measured - g.Before) / (g.Predicted - g.Before) }

// small is the share of the value with the cause below which a predicted change is none.
const small = 0.05

// none reports whether no change is predicted.
func (g *Gain) none() bool { return math.Abs(g.Predicted-g.Before) < small*g.Before }

// Holds reports whether the prediction is as good as is asked for. If no change is predicted, none must be measured.
func (g *Gain) Holds() bool {
	if g.none() {
		return g.AtLeast || math.Abs(g.Measured-g.Predicted) < small*g.Before
	}
	return g.Ratio() >= leastRatio && (g.AtLeast || g.Ratio() <= mostRatio)
}

// String returns the values and the ratio.
func (g *Gain) String() string {
	if g.Unknown != "" {
		return "no gain is predicted: " + g.Unknown
	}
	if g.none() {
		return fmt.Sprintf("%s: %.1f, no change predicted, measured %.1f", g.Of, g.Before, g.Measured)
	}
	least := ""
	if g.AtLeast {
		least = "at least "
	}
	return fmt.Sprintf("%s: %.1f, predicted %s%.1f, measured %.1f, ratio %.2f", g.Of, g.Before, least, g.Predicted,
		g.Measured, g.Ratio())
}

// gainOf compares the prediction of a verdict with the verdict after the cause was removed. Where the rate depends on
// the cause, rates are compared, else the mean number of pods without a node: both runs have the same pods.
func gainOf(with, without *bottleneck.Verdict) *Gain {
	first := &with.Findings[0]
	if first.Gain.Unknown != "" {
		return &Gain{Unknown: first.Gain.Unknown}
	}
	if first.Gain.PerSecond > with.Placed {
		return &Gain{Of: "pods/s", Before: with.Placed, Predicted: first.Gain.PerSecond, Measured: without.Placed,
			AtLeast: first.Gain.AtLeast}
	}
	if first.Gain.Saved <= 0 || with.Seconds <= 0 || without.Seconds <= 0 {
		return nil
	}
	return &Gain{Of: "waiting pods", Before: with.PodSeconds / with.Seconds,
		Predicted: with.PodSeconds / with.Seconds * (1 - first.Gain.Saved),
		Measured:  without.PodSeconds / without.Seconds, AtLeast: first.Gain.AtLeast}
}
