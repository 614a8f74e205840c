// SPDX-License-Identifier: Apache-2.0

package quality

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/sim"
)

// SimulateJobs runs jobs in the simulator: decisions, calls, watches, kubelets and starts take their time.
func SimulateJobs(jobs []Job, nodes int, newStepper func() sim.Stepper, seed uint64) *JobResult {
	watch := &gangWatch{sizes: map[string]int{}}
	measure := sim.NewMeasure(24 * time.Hour)
	w := sim.New(sim.Setup{Seed: seed, Model: sim.DefaultModel(), Observer: measure, Schedulers: []sim.Scheduler{{
		Name: "kumiki", Make: func() sim.Stepper { watch.Stepper = newStepper(); return watch }}}})
	for _, n := range JobNodes(nodes) {
		w.AddNode(n)
	}
	w.Start()
	loads := map[int64]*sim.Workload{} // GPUs of a pod -> workload
	var list []*sim.Workload
	units := make([]*sim.Unit, len(jobs))
	for i := range jobs {
		j := &jobs[i]
		l := loads[j.Each]
		if l == nil {
			l = &sim.Workload{Name: fmt.Sprint("gpus-", j.Each), Kind: sim.Gang, Pod: jobPod(j.Each)}
			loads[j.Each] = l
			list = append(list, l)
		}
		w.At(seconds(j.Arrival), func() {
			units[i] = w.CreateUnit(l, j.Pods, seconds(j.Work))
			watch.sizes[units[i].Name] = j.Pods
		})
	}
	why := w.Run(sim.Limits{Until: math.MaxInt64, WhenQuiet: true})
	started, ended := make([]float64, len(jobs)), make([]float64, len(jobs))
	for i, u := range units {
		started[i], ended[i] = math.NaN(), math.NaN()
		if u != nil && u.Finished >= 0 {
			started[i], ended[i] = u.Started.Seconds(), u.Finished.Seconds()
		}
	}
	out := result(jobs, started, ended)
	out.Partial = watch.partial
	figures := measure.Result(w, list, why)
	if hold, is := figures.Find("gangs.partialHold"); is {
		out.Hold = *hold.Value
	}
	return out
}

func seconds(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }

// gangWatch counts decisions for a part of a gang.
type gangWatch struct {
	sim.Stepper
	sizes   map[string]int // gang -> pods
	partial int
}

// Step passes an event on, and checks the binds that follow.
func (g *gangWatch) Step(ev engine.Event) []engine.Effect {
	effects := g.Stepper.Step(ev)
	bound := map[string]int{} // gang -> pods
	for _, f := range effects {
		if b, is := f.(engine.Bind); is {
			bound[b.Pod.Name[:strings.LastIndex(b.Pod.Name, "-")]]++
		}
	}
	for name, n := range bound { // order: a count is the same in any
		if n != g.sizes[name] {
			g.partial++
		}
	}
	return effects
}
