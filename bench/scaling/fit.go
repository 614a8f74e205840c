// SPDX-License-Identifier: Apache-2.0

package scaling

import (
	"fmt"
	"math"
)

// Point is one measurement: the throughput with a number of workers. Both are above 0.
type Point struct{ N, X float64 }

// Law is a model of throughput.
type Law string

// The laws.
const (
	Amdahl Law = "Amdahl"
	USL    Law = "USL"
)

// Estimate is a parameter with its 95 % confidence interval.
type Estimate struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Fit is a law with its parameters, or the reason why there are none.
type Fit struct {
	Law Law `json:"law"`
	// Why is why the law has no parameters; empty if it has.
	Why string `json:"why,omitempty"`
	// Lambda is the throughput of one worker, Sigma the serial share, Kappa the cost of coherency (USL alone).
	Lambda *Estimate `json:"lambda,omitempty"`
	Sigma  *Estimate `json:"sigma,omitempty"`
	Kappa  *Estimate `json:"kappa,omitempty"`
	// Error is the standard deviation of the relative residuals.
	Error float64 `json:"relativeError,omitempty"`
	// Limit is the largest speed-up that Amdahl's law allows, 1/σ and at least 1; nil if σ may be 0. Peak is the N with
	// the largest throughput by the USL; nil if κ may be 0.
	Limit *float64 `json:"limit,omitempty"`
	Peak  *float64 `json:"peak,omitempty"`
}

// At returns the throughput of the law. The fit must have parameters.
func (f *Fit) At(n float64) float64 {
	d := 1 + f.Sigma.Value*(n-1)
	if f.Kappa != nil {
		d += f.Kappa.Value * n * (n - 1)
	}
	return f.Lambda.Value * n / d
}

// Of fits a law to measurements.
func Of(law Law, points []Point) Fit {
	f := Fit{Law: law}
	parameters := 2
	if law == USL {
		parameters = 3
	}
	different := map[float64]bool{} // N -> measured
	for _, p := range points {
		if !(p.N > 0) || !(p.X > 0) || math.IsInf(p.N, 0) || math.IsInf(p.X, 0) {
			f.Why = fmt.Sprintf("a measurement of %g with %g is not one", p.X, p.N)
			return f
		}
		different[p.N] = true
	}
	if len(different) <= parameters {
		f.Why = fmt.Sprintf("not identifiable: %d different values for %d parameters; it takes at least %d",
			len(different), parameters, parameters+1)
		return f
	}
	theta, cov, residual, ok := leastSquares(points, parameters)
	if !ok || theta[0] <= 0 {
		f.Why = "not identifiable: the measurements do not determine the parameters"
		return f
	}
	f.set(theta, cov, quantile(len(points)-parameters))
	f.Error = residual
	f.judge()
	return f
}

// set converts the linear parameters 1/λ, σ/λ and κ/λ.
func (f *Fit) set(theta []float64, cov [][]float64, t float64) {
	a := theta[0]
	lambda := 1 / a
	half := t * math.Sqrt(cov[0][0]) / (a * a)
	f.Lambda = &Estimate{lambda, lambda - half, lambda + half}
	quotient := func(i int) *Estimate {
		r := theta[i] / a
		v := (cov[i][i] - 2*r*cov[0][i] + r*r*cov[0][0]) / (a * a)
		half := t * math.Sqrt(max(v, 0))
		return &Estimate{r, r - half, r + half}
	}
	f.Sigma = quotient(1)
	if len(theta) > 2 {
		f.Kappa = quotient(2)
	}
}

// judge removes parameters that mean nothing, and computes what follows from the others.
func (f *Fit) judge() {
	s, k := f.Sigma, f.Kappa
	switch {
	case s.High-s.Low > 1:
		f.Why = fmt.Sprintf("not identifiable: the interval of the serial share, %.2f to %.2f, is wider than all "+
			"values that it can have", s.Low, s.High)
	case s.High < 0:
		f.Why = fmt.Sprintf("does not apply: throughput grows faster than the number of workers (σ %.2f to %.2f)",
			s.Low, s.High)
	case s.Low > 1:
		f.Why = fmt.Sprintf("does not apply: throughput falls with the number of workers (σ %.2f to %.2f)", s.Low,
			s.High)
	case k != nil && k.High < 0:
		f.Why = fmt.Sprintf("does not apply: workers speed each other up (κ %.4f to %.4f)", k.Low, k.High)
	}
	if f.Why != "" {
		f.Lambda, f.Sigma, f.Kappa, f.Error = nil, nil, nil, 0
		return
	}
	if k == nil && s.Low > 0 {
		limit := max(1/s.Value, 1)
		f.Limit = &limit
	}
	if k != nil && k.Low > 0 && s.Value < 1 {
		peak := math.Sqrt((1 - s.Value) / k.Value)
		f.Peak = &peak
	}
}

// leastSquares minimizes the squares of 1 - (X/N)(θ0 + θ1(N-1) + θ2 N(N-1)). It returns the parameters, their
// covariance and the standard deviation of the residuals, and reports whether the parameters are determined.
func leastSquares(points []Point, parameters int) (theta []float64, cov [][]float64, deviation float64, ok bool) {
	row := func(p Point) []float64 {
		w := p.X / p.N
		return []float64{w, w * (p.N - 1), w * p.N * (p.N - 1)}[:parameters]
	}
	normal, right := make([][]float64, parameters), make([]float64, parameters)
	for i := range normal {
		normal[i] = make([]float64, parameters)
	}
	for _, p := range points {
		x := row(p)
		for i := range x {
			right[i] += x[i]
			for j := range x {
				normal[i][j] += x[i] * x[j]
			}
		}
	}
	inverse, ok := invert(normal)
	if !ok {
		return nil, nil, 0, false
	}
	theta = make([]float64, parameters)
	for i := range theta {
		for j := range right {
			theta[i] += inverse[i][j] * right[j]
		}
	}
	sum := 0.0
	for _, p := range points {
		r := 1.0
		for i, x := range row(p) {
			r -= theta[i] * x
		}
		sum += r * r
	}
	variance := sum / float64(len(points)-parameters)
	for i := range inverse {
		for j := range inverse[i] {
			inverse[i][j] *= variance
		}
	}
	return theta, inverse, math.Sqrt(variance), true
}

// smallest is the pivot, relative to the largest element of its row at the start, below which a matrix is singular.
const smallest = 1e-10

// invert returns the inverse of a symmetric matrix, by elimination with a scaled diagonal. It reports false if the
// matrix is singular.
func invert(m [][]float64) ([][]float64, bool) {
	n := len(m)
	scale := make([]float64, n)
	for i := range scale {
		if scale[i] = math.Sqrt(m[i][i]); !(scale[i] > 0) {
			return nil, false
		}
	}
	work := make([][]float64, n) // the scaled matrix, and the identity beside it
	for i := range work {
		work[i] = make([]float64, 2*n)
		for j := range n {
			work[i][j] = m[i][j] / scale[i] / scale[j]
		}
		work[i][n+i] = 1
	}
	for i := range n {
		if math.Abs(work[i][i]) < smallest { // its diagonal was 1
			return nil, false
		}
		pivot := work[i][i]
		for j := range work[i] {
			work[i][j] /= pivot
		}
		for k := range n {
			if factor := work[k][i]; k != i {
				for j := range work[k] {
					work[k][j] -= factor * work[i][j]
				}
			}
		}
	}
	out := make([][]float64, n)
	for i := range out {
		out[i] = make([]float64, n)
		for j := range n {
			out[i][j] = work[i][n+j] / scale[i] / scale[j]
		}
	}
	return out, true
}

// students are the quantiles of 97.5 % of Student's distribution, by degrees of freedom from 1 on.
var students = []float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
	2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045,
	2.042}

// quantile returns half the width of a 95 % interval in standard errors.
func quantile(freedom int) float64 {
	if freedom <= len(students) {
		return students[freedom-1]
	}
	return 1.96
}
