// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"github.com/kumiki-scheduler/kumiki/sim"
)

// HeavyTail is a generator of pods whose work and requests have heavy tails. A run draws them anew from its seed.
type HeavyTail struct {
	Pods  int           `yaml:"pods"`
	Every sim.Durations `yaml:"every"` // gaps between arrivals
	Work  sim.Durations `yaml:"work"`
	CPU   Tail          `yaml:"cpu"`
	// Memory is drawn independently of CPU.
	Memory Tail `yaml:"memory"`
	// Gangs is the share of arrivals that are gangs, of 2, 4, 8, … pods up to GangSize; each size is half as frequent
	// as the one before.
	Gangs    Share `yaml:"gangs"`
	GangSize int   `yaml:"gangSize"`
}

// Tail is a Pareto distribution of amounts, in thousandths of cores or in bytes, bounded above.
type Tail struct {
	Min, Max float64
	Alpha    float64
}

// tail parses a distribution of amounts, as "pareto 100m 1.2 max 16".
func tail(text string) (out Tail, err error) {
	words := strings.Fields(text)
	bad := fmt.Errorf("%q is not: pareto MIN ALPHA max MAX, as pareto 100m 1.2 max 16", text)
	if len(words) != 5 || words[0] != "pareto" || words[3] != "max" {
		return out, bad
	}
	least, err1 := amount(words[1])
	most, err2 := amount(words[4])
	alpha, err3 := strconv.ParseFloat(words[2], 64)
	if errors.Join(err1, err2, err3) != nil {
		return out, bad
	}
	out = Tail{least.AsApproximateFloat64() * 1000, most.AsApproximateFloat64() * 1000, alpha}
	if !(alpha > 0) || math.IsInf(alpha, 0) || out.Min <= 0 || out.Max < out.Min || out.Max > 1e18 {
		return out, fmt.Errorf("%q: minimum and tail index must be above 0, the maximum at least the minimum", text)
	}
	return out, nil
}

// draw returns an amount for random bits. It is rounded up to one of four steps for each factor of two, so that the
// number of different shapes stays small.
func (t Tail) draw(bits uint64) int64 {
	// sim.Durations computes a Pareto draw with the same bits on every machine.
	const one = time.Second
	factor := sim.Durations{Shape: sim.Pareto, A: one, Alpha: t.Alpha}.Draw(bits)
	v := min(float64(t.Min*(float64(factor)/float64(one))), t.Max)
	frac, exp := math.Frexp(v)
	return int64(math.Min(math.Ceil(t.Max), math.Ceil(math.Ldexp(math.Ceil(frac*8)/8, exp))))
}

func (h *HeavyTail) check() error {
	switch {
	case h.Pods < 1 || h.Pods > maxCount:
		return fmt.Errorf("pods must be from 1 to %d, is %d", maxCount, h.Pods)
	case h.Work.IsZero() || h.CPU == Tail{} || h.Memory == Tail{}:
		return errors.New("a generator needs work, cpu and memory")
	case h.Gangs > 0 && (h.GangSize < 2 || h.GangSize > 4096):
		return fmt.Errorf("gangSize must be from 2 to 4096, is %d", h.GangSize)
	}
	return nil
}

// The streams of draws of a generator.
const (
	drawGap uint64 = iota
	drawWork
	drawCPU
	drawMemory
	drawGang
	drawSize
	draws
)

// Load requests the arrivals.
func (h *HeavyTail) Load(w *sim.World, index int) ([]*sim.Workload, error) {
	rows := newRows()
	at := time.Duration(0)
	for i, n := uint64(0), 0; n < h.Pods; i++ {
		random := func(stream uint64) uint64 { return sim.Random(w.Seed(), (uint64(index)<<40+i)*draws+stream) }
		size, kind := 1, sim.Pods
		if float64(random(drawGang)>>11)/(1<<53) < float64(h.Gangs) {
			kind = sim.Gang
			size = 2
			for bits := random(drawSize); 2*size <= h.GangSize && bits&1 == 0; bits >>= 1 {
				size *= 2
			}
		}
		size = min(size, h.Pods-n)
		n += size
		memory := h.Memory.draw(random(drawMemory)) / 1000
		l := rows.shape(v1.ResourceList{
			v1.ResourceCPU:    *apiresource.NewMilliQuantity(h.CPU.draw(random(drawCPU)), apiresource.DecimalSI),
			v1.ResourceMemory: *apiresource.NewQuantity(memory, apiresource.BinarySI)}, 0, kind, size)
		rows.items = append(rows.items, item{at, h.Work.Draw(random(drawWork)), size, l})
		at += h.Every.Draw(random(drawGap))
	}
	return rows.Load(w, index)
}
