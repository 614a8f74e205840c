// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// stream separates the draws of different purposes, so that one more draw of a kind moves no draw of another.
type stream uint64

const (
	streamArrival stream = iota + 1
	streamDuration
	streamFailure
	streamWatch
	streamCall
	streamFate
	streamKubelet
	streamStop
	streamOther // of other packages
	streamVolume
	streamAnswer
	streamSight
)

// mix returns 64 random bits for a seed, a stream and two numbers (SplitMix64's finaliser over each of them).
func mix(seed uint64, s stream, a, b uint64) uint64 {
	x := seed
	for _, v := range [...]uint64{uint64(s), a, b} {
		x += 0x9e3779b97f4a7c15 + v
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		x ^= x >> 31
	}
	return x
}

// unit converts random bits to a number in [0, 1).
func unit(bits uint64) float64 { return float64(bits>>11) / (1 << 53) }

// ln returns the natural logarithm of a positive number. Package math does not promise the same bits on every machine,
// because a compiler may fuse a product with a sum; the conversions here forbid that.
func ln(x float64) float64 {
	frac, exp := math.Frexp(x)
	s := (frac - 1) / (frac + 1)
	square := float64(s * s)
	sum, power := 0.0, s
	for k := 1; k < 60; k += 2 {
		sum += float64(power / float64(k))
		power = float64(power * square)
	}
	return float64(2*sum) + float64(float64(exp)*math.Ln2)
}

// exp returns e to the power of x, with the same bits on every machine, for x of moderate size.
func exp(x float64) float64 {
	n := math.Floor(x / math.Ln2)
	r := x - float64(n*math.Ln2)
	sum, term := 1.0, 1.0
	for k := 1; k < 30; k++ {
		term = float64(term * r / float64(k))
		sum += term
	}
	return math.Ldexp(sum, int(n))
}

// Shape is the shape of a distribution of durations.
type Shape uint8

// The shapes.
const (
	Fixed       Shape = iota // always A
	Uniform                  // from A to B
	Exponential              // of mean A, at most B if B is not 0
	Pareto                   // at least A, with tail index Alpha, at most B if B is not 0
	Quantiles                // linear between the quantiles Steps
)

// Levels are the levels of the quantiles in Durations.Steps.
var Levels = [...]float64{0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97, 0.99, 1}

// Durations is a distribution of durations. The zero value is always 0.
type Durations struct {
	Shape Shape
	A, B  time.Duration
	Alpha float64
	// Steps are the quantiles at Levels, ascending; of the shape Quantiles alone.
	Steps [len(Levels)]time.Duration
}

// Always is the distribution of one duration.
func Always(d time.Duration) Durations { return Durations{A: d} }

// IsZero reports whether every draw is 0.
func (d Durations) IsZero() bool { return d == Durations{} }

// String returns the form that scenario files have.
func (d Durations) String() string {
	switch d.Shape {
	case Uniform:
		return fmt.Sprintf("uniform %v %v", d.A, d.B)
	case Exponential:
		return fmt.Sprintf("exponential %v max %v", d.A, d.B)
	case Pareto:
		return fmt.Sprintf("pareto %v %v max %v", d.A, d.Alpha, d.B)
	case Quantiles:
		words := make([]string, 0, 1+len(Levels))
		words = append(words, "quantiles")
		for _, step := range d.Steps {
			words = append(words, step.String())
		}
		return strings.Join(words, " ")
	}
	return d.A.String()
}

// longest bounds a draw, so that times cannot overflow.
const longest = 100 * 365 * 24 * time.Hour

// draw returns the duration for random bits.
func (d Durations) draw(bits uint64) time.Duration {
	var out float64
	switch d.Shape {
	case Uniform:
		out = float64(d.A) + float64(unit(bits)*float64(d.B-d.A))
	case Exponential:
		out = -float64(float64(d.A) * ln(1-unit(bits)))
	case Pareto:
		out = float64(float64(d.A) * exp(-ln(1-unit(bits))/d.Alpha))
	case Quantiles:
		return d.Quantile(unit(bits))
	default:
		return d.A
	}
	limit := longest
	if d.B > 0 {
		limit = d.B
	}
	if !(out < float64(limit)) {
		return limit
	}
	return time.Duration(out)
}

// Quantile returns the quantile of the shape Quantiles at a level from 0 to 1.
func (d Durations) Quantile(level float64) time.Duration {
	i := 1
	for i < len(Levels)-1 && level > Levels[i] {
		i++
	}
	share := (level - Levels[i-1]) / (Levels[i] - Levels[i-1])
	return d.Steps[i-1] + time.Duration(float64(share*float64(d.Steps[i]-d.Steps[i-1])))
}

// Median returns the median of a distribution.
func (d Durations) Median() time.Duration { return d.draw(1 << 63) }

// Draw returns the duration for random bits, such as those of Random.
func (d Durations) Draw(bits uint64) time.Duration { return d.draw(bits) }

// Random returns 64 random bits for a seed and a number, the same on every machine.
func Random(seed, number uint64) uint64 { return mix(seed, streamOther, number, 0) }
