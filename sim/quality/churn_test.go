// SPDX-License-Identifier: Apache-2.0

package quality

import (
	"math"
	"testing"
)

// TestChurnReachesItsLoad: at a low load nothing is lost, and the mean allocation is about the load; at twice what the
// cluster has, about half is lost.
func TestChurnReachesItsLoad(t *testing.T) {
	o := small("100,1,1,500,", "100,1,1,250,")
	for i := range o.Pods {
		o.Pods[i].Deleted = 10
	}
	c := &Churn{Seed: 1, Load: 0.05, Arrivals: 20_000, Warmup: 1000, Longest: 100}
	r, err := o.ReferenceChurn(BestFit, c)
	if err != nil || r.LostShare() > 0.1 || math.Abs(r.Allocated-5) > 0.5 || r.Pods != 19_000 {
		t.Errorf("%+v (%v), want hardly a loss and an allocation of 5 %%", r, err)
	}
	c.Load = 2
	if r, _ = o.ReferenceChurn(BestFit, c); r.LostShare() < 45 || r.LostShare() > 65 || r.Allocated > 100 {
		t.Errorf("%+v, want about half of it lost", r)
	}
}

// TestChurnOfAScheduler: the engine loses nothing at a low load, and its pods end.
func TestChurnOfAScheduler(t *testing.T) {
	o := small("100,1,1,500,", "100,1,2,1000,")
	for i := range o.Pods {
		o.Pods[i].Deleted = 10
	}
	c := &Churn{Seed: 1, Load: 0.8, Arrivals: 500, Warmup: 100, Longest: 100}
	ours, err := o.PlaceChurn(withDevices, c)
	if err != nil {
		t.Fatal(err)
	}
	theirs, _ := o.ReferenceChurn(FirstFit, c)
	if ours.Requested != theirs.Requested || ours.Allocated < 20 {
		t.Errorf("%+v and %+v, want the same arrivals and an allocation", ours, theirs)
	}
}

// TestChoiceIsWhatIsTaken: choose names the GPUs that take takes, and release gives them back.
func TestChoiceIsWhatIsTaken(t *testing.T) {
	for _, s := range []OpenbShape{{CPU: 5, Memory: 7, GPUs: 1, Milli: 300}, {GPUs: 2, Milli: 1000}, {CPU: 1}} {
		before := openbState{cpu: 10, memory: 10, gpus: 4}
		before.free = [maxGPUs]int64{1000, 200, 1000, 500}
		n := before
		gpus := n.choose(&s, 3)
		n.take(&s, 3)
		after := before
		after.cpu, after.memory = after.cpu-s.CPU, after.memory-s.Memory
		for _, k := range gpus {
			after.free[k] -= s.Milli
		}
		if n != after || len(gpus) != s.GPUs {
			t.Errorf("%+v: taken %+v, chosen %v", s, n, gpus)
		}
		if n.release(&s, gpus); n != before {
			t.Errorf("%+v: after the release %+v, want %+v", s, n, before)
		}
	}
}
