// SPDX-License-Identifier: Apache-2.0

package scaling

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var numbers = []float64{1, 2, 4, 8, 16}

// generated are measurements of a law, each of several runs with a relative error.
func generated(lambda, sigma, kappa, deviation float64, runs int, seed uint64) (list []Point) {
	r := rand.New(rand.NewPCG(seed, 3))
	for _, n := range numbers {
		for range runs {
			x := lambda * n / (1 + sigma*(n-1) + kappa*n*(n-1))
			list = append(list, Point{n, x * (1 + deviation*r.NormFloat64())})
		}
	}
	return list
}

// TestGeneratedDataGiveTheirParameters: without errors exactly, for every law.
func TestGeneratedDataGiveTheirParameters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lambda, sigma := rapid.Float64Range(1, 1e4).Draw(t, "λ"), rapid.Float64Range(0, 1).Draw(t, "σ")
		kappa := rapid.Float64Range(0, 0.1).Draw(t, "κ")
		amdahl, usl := Of(Amdahl, generated(lambda, sigma, 0, 0, 1, 0)), Of(USL, generated(lambda, sigma, kappa, 0, 1, 0))
		for _, f := range []Fit{amdahl, usl} {
			if f.Why != "" || math.Abs(f.Lambda.Value/lambda-1) > 1e-6 || math.Abs(f.Sigma.Value-sigma) > 1e-6 {
				t.Fatalf("%s: %+v, want λ %g, σ %g", f.Law, f, lambda, sigma)
			}
		}
		if math.Abs(usl.Kappa.Value-kappa) > 1e-7 || amdahl.Kappa != nil {
			t.Fatalf("κ is %+v, want %g", usl.Kappa, kappa)
		}
		for _, n := range numbers {
			if want := lambda * n / (1 + sigma*(n-1) + kappa*n*(n-1)); math.Abs(usl.At(n)/want-1) > 1e-6 {
				t.Fatalf("X(%g) is %g, want %g", n, usl.At(n), want)
			}
		}
	})
}

// TestIntervalsCoverTheParameters: with errors of 3 %, about 95 % of the intervals contain the parameter. The seeds are
// fixed, so the count is too.
func TestIntervalsCoverTheParameters(t *testing.T) {
	const experiments, sigma, kappa = 400, 0.2, 0.01
	inside := map[string]int{}
	for seed := range uint64(experiments) {
		a, u := Of(Amdahl, generated(500, sigma, 0, 0.03, 3, seed)), Of(USL, generated(500, sigma, kappa, 0.03, 3, seed))
		for name, c := range map[string]struct {
			e    *Estimate
			want float64
		}{"Amdahl's σ": {a.Sigma, sigma}, "Amdahl's λ": {a.Lambda, 500}, "USL's σ": {u.Sigma, sigma},
			"USL's κ": {u.Kappa, kappa}} {
			if c.e != nil && c.e.Low <= c.want && c.want <= c.e.High {
				inside[name]++
			}
		}
	}
	for name, n := range inside {
		if share := float64(n) / experiments; share < 0.91 || share > 0.985 {
			t.Errorf("%.1f %% of the intervals of %s contain it", 100*share, name)
		}
	}
	if len(inside) != 4 {
		t.Errorf("parameters %v", inside)
	}
}

// TestWhatFollowsFromTheParameters: the limit of the speed-up, and the number of workers with the largest throughput.
func TestWhatFollowsFromTheParameters(t *testing.T) {
	a := Of(Amdahl, generated(500, 0.25, 0, 0.001, 3, 1))
	if a.Limit == nil || math.Abs(*a.Limit-4) > 0.05 || a.Peak != nil || a.Error < 0.0005 || a.Error > 0.002 {
		t.Errorf("with a serial share of a quarter: %+v, limit %v", a, a.Limit)
	}
	u := Of(USL, generated(500, 0.19, 0.01, 0.001, 3, 1))
	if u.Peak == nil || math.Abs(*u.Peak-9) > 0.2 || u.Limit != nil {
		t.Errorf("with a peak at 9: %+v, peak %v", u, u.Peak)
	}
	flat := Of(Amdahl, generated(500, 1, 0, 0.01, 3, 1))
	if flat.Why != "" || flat.Sigma.Low > 1 || flat.Sigma.High < 1 || *flat.Limit < 1 {
		t.Errorf("throughput that does not change is a serial share of 1: %+v", flat)
	}
	linear := Of(USL, generated(500, 0, 0, 0.01, 3, 2))
	if linear.Why != "" || linear.Peak != nil || linear.Limit != nil {
		t.Errorf("throughput in proportion to the workers has neither limit nor peak: %+v", linear)
	}
}

// TestWhatCannotBeFitted: each with its reason, and without parameters.
func TestWhatCannotBeFitted(t *testing.T) {
	faster := generated(500, 0, 0, 0.01, 3, 1)
	for i := range faster {
		faster[i].X *= faster[i].N
	}
	slower := generated(500, 1.5, 0, 0.001, 3, 1)
	three := func(n ...float64) (list []Point) {
		for _, one := range n {
			list = append(list, Point{one, 100})
		}
		return list
	}
	for name, c := range map[string]struct {
		law    Law
		points []Point
		want   string
	}{
		"two values":         {Amdahl, three(1, 2, 2, 2, 2), "2 different values for 2 parameters; it takes at least 3"},
		"three for USL":      {USL, three(1, 2, 4, 4), "3 different values for 3 parameters"},
		"none":               {Amdahl, nil, "0 different values"},
		"noise":              {Amdahl, []Point{{1, 100}, {2, 300}, {4, 90}}, "not identifiable: the interval"},
		"faster than linear": {Amdahl, faster, "grows faster than the number of workers"},
		"slower with more":   {Amdahl, slower, "falls with the number of workers"},
		"no throughput":      {Amdahl, append(three(1, 2, 4), Point{8, 0}), "is not one"},
		"not a number":       {USL, append(three(1, 2, 4, 8), Point{8, math.NaN()}), "is not one"},
	} {
		f := Of(c.law, c.points)
		if !strings.Contains(f.Why, c.want) || f.Sigma != nil || f.Lambda != nil || f.Limit != nil {
			t.Errorf("%s: %+v, want %q", name, f, c.want)
		}
	}
}

// TestSingularMatrix: equations that depend on each other have no inverse; otherwise it is one.
func TestSingularMatrix(t *testing.T) {
	if _, ok := invert([][]float64{{1, 2}, {2, 4}}); ok {
		t.Error("a singular matrix has an inverse")
	}
	if _, ok := invert([][]float64{{0, 0}, {0, 1}}); ok {
		t.Error("a matrix with a zero has an inverse")
	}
	got, ok := invert([][]float64{{4, 2}, {2, 3}})
	if text := fmt.Sprintf("%.3f", got); !ok || text != "[[0.375 -0.250] [-0.250 0.500]]" {
		t.Errorf("the inverse is %s", text)
	}
}
