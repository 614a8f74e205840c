// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkMeasuring runs 20,000 pods on 1,000 nodes with all metrics and with none. The difference is what measuring
// costs.
func BenchmarkMeasuring(b *testing.B) {
	for name, every := range map[string]time.Duration{"none": 0, "all": 30 * time.Second} { // order: each by itself
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				benchMeasuring(every)
			}
		})
	}
}

// benchMeasuring takes a sample as often as every; 0 for no measurement at all.
func benchMeasuring(every time.Duration) {
	setup := Setup{Seed: 1, Schedulers: []Scheduler{kumiki("a")}, Model: DefaultModel()}
	m := NewMeasure(every)
	if every > 0 {
		setup.Observer = m
	}
	w := New(setup)
	for i := range 1000 {
		w.AddNode(node(fmt.Sprintf("n%d", i), "32"))
	}
	w.Start()
	var loads []*Workload
	for i, cpu := range []string{"1", "2", "500m", "4"} {
		l := &Workload{Name: "w" + cpu, Kind: Pods, Pod: asking(cpu, 0), Count: 5000, Every: Durations{Shape: Exponential,
			A: 10 * time.Millisecond}, Work: Durations{Shape: Uniform, A: time.Minute, B: 3 * time.Minute}}
		w.Load(l, i)
		loads = append(loads, l)
	}
	why := w.Run(Limits{Until: time.Hour, WhenQuiet: true})
	if every > 0 {
		m.Result(w, loads, why)
	}
}
