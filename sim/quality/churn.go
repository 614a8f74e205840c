// SPDX-License-Identifier: Apache-2.0

package quality

import (
	"container/heap"
	"math/rand"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// Churn is arrivals and ends: pods drawn from the trace arrive at random (a Poisson process) and run as long as
// in the trace. A pod that is not placed is lost.
type Churn struct {
	Seed int64
	// Load is the share of all GPUs that would be allocated on average if every pod were placed.
	Load float64
	// Arrivals is the number of pods. The first Warmup ones are not counted.
	Arrivals, Warmup int
	// Longest bounds how long a pod runs, in seconds: the longest ones of the trace run for months, so that no run of
	// an affordable length would reach the load.
	Longest float64
}

// ChurnResult is what became of a Churn, in thousandths of GPUs.
type ChurnResult struct {
	Requested, Lost int64 // of arrivals that count
	Pods, LostPods  int
	// Allocated is the mean share of all GPUs, in percent, over the time that counts.
	Allocated float64
}

// LostShare returns the share of the requested GPUs that was lost, in percent.
func (r *ChurnResult) LostShare() float64 {
	return 100 * float64(r.Lost) / float64(max(r.Requested, 1))
}

// arrival is a pod of a Churn.
type arrival struct {
	at, until float64
	pod       int // index in Pods
}

// arrivals draws the pods of a Churn.
func (o *Openb) arrivals(c *Churn) []arrival {
	r := rand.New(rand.NewSource(c.Seed))
	runs := func(i int) float64 { return min(max(o.Pods[i].Deleted-o.Pods[i].Created, 1), c.Longest) }
	work := 0.0 // GPU seconds of a mean pod
	for i := range o.Pods {
		work += float64(float64(o.Pods[i].GPUMilli())*runs(i)) / float64(len(o.Pods))
	}
	gap := work / (c.Load * float64(o.TotalGPU()))
	list := make([]arrival, c.Arrivals)
	at := 0.0
	for k := range list {
		at += float64(gap * r.ExpFloat64())
		i := r.Intn(len(o.Pods))
		list[k] = arrival{at, at + runs(i), i}
	}
	return list
}

// churn runs arrivals. place returns how to end the pod, nil if it was not placed.
func (o *Openb) churn(c *Churn, place func(i int) (end func(), err error)) (*ChurnResult, error) {
	out := &ChurnResult{}
	var running endings
	used, now, since, area := int64(0), 0.0, 0.0, 0.0
	pass := func(to float64) { area, now = area+float64(float64(used)*(to-now)), to }
	for k, a := range o.arrivals(c) {
		for len(running) > 0 && running[0].at <= a.at {
			e := heap.Pop(&running).(ending)
			pass(e.at)
			used -= e.milli
			e.end()
		}
		pass(a.at)
		if k == c.Warmup {
			area, since = 0, now
		}
		milli := o.Pods[a.pod].GPUMilli()
		end, err := place(a.pod)
		if err != nil {
			return nil, err
		}
		if end != nil {
			used += milli
			heap.Push(&running, ending{a.until, milli, end})
		}
		if k < c.Warmup {
			continue
		}
		out.Pods, out.Requested = out.Pods+1, out.Requested+milli
		if end == nil {
			out.LostPods, out.Lost = out.LostPods+1, out.Lost+milli
		}
	}
	out.Allocated = 100 * area / (now - since) / float64(o.TotalGPU())
	return out, nil
}

// PlaceChurn runs a scheduler.
func (o *Openb) PlaceChurn(make NewPlacer, c *Churn) (*ChurnResult, error) {
	r, err := o.start(make)
	if err != nil {
		return nil, err
	}
	return o.churn(c, func(i int) (func(), error) {
		p, err := r.place(i)
		if p == nil {
			return nil, err
		}
		return func() { r.end(p) }, nil
	})
}

// end ends a pod.
func (r *openbRun) end(p *cluster.Pod) {
	r.placer.Remove(p)
	r.devices.Release(p.Name)
}

// ReferenceChurn runs a policy.
func (o *Openb) ReferenceChurn(policy Policy, c *Churn) (*ChurnResult, error) {
	r := o.newReference(policy, c.Seed)
	return o.churn(c, func(i int) (func(), error) {
		s := &o.Pods[i].OpenbShape
		n, gpus := r.place(s)
		if n < 0 {
			return nil, nil
		}
		return func() { r.remove(s, n, gpus) }, nil
	})
}

// FirstFit takes the first node that a pod fits, in the order that the seed draws.
func FirstFit(n *openbState, s *OpenbShape) (score int64, gpu int) { return 0, n.tightest(s) }

// ending is the end of a pod.
type ending struct {
	at    float64
	milli int64
	end   func()
}

// endings is a heap, with the first end first.
type endings []ending

func (h endings) Len() int           { return len(h) }
func (h endings) Less(i, j int) bool { return h[i].at < h[j].at }
func (h endings) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *endings) Push(x any)        { *h = append(*h, x.(ending)) }
func (h *endings) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
